//! The jobs of the tutorials that people learnt TFJob from, with what stands for their images.

pub(super) mod distributed;
pub(super) mod master;
pub(super) mod worker;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::folder_of;

    /// The manifests that other tests play are the ones that people are given.
    #[test]
    fn manifests_are_the_tutorials_own() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
        for (given, known) in [
            ("000/module6-ex1-gpu.yaml", "module6-ex1-gpu.yaml"),
            ("003/mnist.yaml", "mnist.yaml"),
            ("003/secret.yaml", "secret.yaml"),
            ("003/tf-smoke-gpu.yaml", "tf-smoke-gpu.yaml"),
            ("003/generated-name.yaml", "generated-name.yaml"),
            ("004/example-tfjob.yaml", "example-tfjob.yaml"),
            ("004/module6-ex1-gpu.yaml", "module6-ex1-gpu-4.yaml"),
            ("004/module6-ex2-gpu.yaml", "module6-ex2-gpu.yaml"),
        ] {
            let given = fs::read_to_string(folder_of("seeds").join(given)).unwrap();
            assert_eq!(given, fs::read_to_string(own.join(known)).unwrap(), "{known}");
        }
        let given = fs::read_to_string(folder_of("volcano").join("tftest.yaml")).unwrap();
        assert_eq!(given, fs::read_to_string(own.join("tftest.yaml")).unwrap());
    }
}
