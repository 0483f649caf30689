//! What to do about the failures that beginners meet, found by exit code and last words. Pure.

/// Packages whose name is not that of their module.
const PACKAGES: [(&str, &str); 8] = [
    ("sklearn", "scikit-learn"),
    ("PIL", "pillow"),
    ("cv2", "opencv-python-headless"),
    ("yaml", "pyyaml"),
    ("skimage", "scikit-image"),
    ("tensorflow_datasets", "tensorflow-datasets"),
    ("tf_keras", "tf-keras"),
    ("google.cloud", "google-cloud-storage"),
];

/// A sign in the last words, and what it means.
struct Sign {
    /// All of these stand in one line.
    parts: &'static [&'static str],
    advice: &'static str,
}

const LEGACY_KERAS: &str = "Keras 3 does not train with this strategy: set the environment variable \
    TF_USE_LEGACY_KERAS=1 and add the package with `--with tf-keras`, or write the training step by hand";
const TF1: &str = "this program was written for TensorFlow 1: use `tf.compat.v1` (with \
    `tf.compat.v1.disable_v2_behavior()`), or an older image such as tensorflow/tensorflow:1.15.5";
const NAMES: &str = "a name was not resolved: names of replicas are `<job>-<type>-<index>`, as in \
    TF_CONFIG, and exist as long as the job; other machines are reached as `--outbound` says";
const PORT: &str = "the port is taken: two servers in one pod, or a port of this machine with \
    hostNetwork; let the program take its port from TF_CONFIG";
const MEMORY: &str =
    "it needs more memory: raise resources.limits.memory, or make the batch smaller";
const DISK: &str = "a disk is full: `trainyard ls` shows what runs and environments take, `trainyard \
    clean` frees it; an emptyDir may have a sizeLimit";
const NETWORK: &str = "it could not reach another machine: see --outbound for how pods do; data can be \
    given with `--mount SRC:DST` instead";
const WRITE: &str = "it wrote where it may not: write to a claim or an emptyDir; the image's own folders \
    are read-only";
const GPU: &str = "the program wants a GPU and there is none: ask for CPU devices, or run it on a \
    machine or cluster with one";

const SIGNS: [Sign; 21] = [
    Sign { parts: &["Attempt to convert a value (PerReplica"], advice: LEGACY_KERAS },
    Sign { parts: &["create_per_worker_dataset"], advice: LEGACY_KERAS },
    Sign { parts: &["module 'tensorflow' has no attribute"], advice: TF1 },
    Sign { parts: &["No module named 'tensorflow.contrib'"], advice: TF1 },
    Sign { parts: &["No module named 'tensorflow.examples"], advice: TF1 },
    Sign { parts: &["Could not start gRPC server"], advice: PORT },
    Sign { parts: &["Address already in use"], advice: PORT },
    Sign { parts: &["Name or service not known"], advice: NAMES },
    Sign { parts: &["Temporary failure in name resolution"], advice: NAMES },
    Sign { parts: &["DNS resolution failed"], advice: NAMES },
    Sign { parts: &["No space left on device"], advice: DISK },
    Sign { parts: &["MemoryError"], advice: MEMORY },
    Sign { parts: &["OOM when allocating tensor"], advice: MEMORY },
    Sign { parts: &["ResourceExhaustedError"], advice: MEMORY },
    Sign { parts: &["Read-only file system"], advice: WRITE },
    Sign { parts: &["PermissionError"], advice: WRITE },
    Sign { parts: &["Cannot assign a device", "GPU"], advice: GPU },
    Sign { parts: &["no known devices", "GPU"], advice: GPU },
    Sign { parts: &["Max retries exceeded"], advice: NETWORK },
    Sign { parts: &["URLError"], advice: NETWORK },
    Sign { parts: &["Network is unreachable"], advice: NETWORK },
];

/// What to do about a failure; none where only its author can know.
pub(crate) fn hint(code: i64, reason: &str, last_words: &[String]) -> Option<String> {
    if reason == "OOMKilled" {
        return Some(MEMORY.to_owned());
    }
    // What stands last is nearest to the end.
    for line in last_words.iter().rev() {
        let found = SIGNS.iter().find(|sign| sign.parts.iter().all(|part| line.contains(part)));
        if let Some(sign) = found {
            return Some(sign.advice.to_owned());
        }
        if let Some(advice) = module(line).or_else(|| file(line)) {
            return Some(advice);
        }
    }
    by_code(code)
}

/// `No module named 'x'`.
fn module(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("No module named ")?;
    let name = rest.trim_matches(|letter| "'\"".contains(letter));
    let name = name.split('\'').next().unwrap_or(name);
    let top = name.split('.').next().unwrap_or(name);
    let known = PACKAGES.iter().find(|(module, _)| *module == name || *module == top);
    let package = known.map_or(top, |(_, package)| package);
    Some(format!(
        "the environment has no module {name:?}: add the package with `--with {package}`, with \
         `--requirements FILE`, or in trainyard.toml; code of your own is brought by `--mount SRC:DST`"
    ))
}

/// `can't open file '/x.py': [Errno 2] No such file or directory`.
fn file(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("can't open file ")?;
    let path = rest.trim_start_matches(['\'', '"']).split(['\'', '"']).next()?;
    let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
    Some(format!(
        "there is no {path} in the pod: an environment stands for the image and has none of its files; \
         bring them with `--mount SRC:{folder}`"
    ))
}

fn by_code(code: i64) -> Option<String> {
    let advice = match code {
        126 => {
            "its command is there and cannot be executed: is it a program, and has it the x bit?"
        }
        127 => {
            "its command was not found: an environment stands for the image and has none of its files; \
             bring programs with `--mount SRC:DST`, or use `--image NAME=host` for this machine's own"
        }
        132 => {
            "the processor does not know an instruction: this TensorFlow was built for a newer one"
        }
        137 => {
            "it was killed from outside; if that was the machine's memory, run fewer replicas at once"
        }
        139 => {
            "the program itself crashed: a native library that does not fit this TensorFlow is usual"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_that_beginners_meet_have_hints() {
        for (code, reason, line, advice) in [
            (1, "Error", "ModuleNotFoundError: No module named 'PIL'", "--with pillow"),
            (1, "Error", "ModuleNotFoundError: No module named 'pandas.core'", "--with pandas`"),
            (1, "Error", "UnknownError: Could not start gRPC server", "port is taken"),
            (1, "Error", "OSError: [Errno 98] Address already in use", "port is taken"),
            (137, "OOMKilled", "epoch 1", "raise resources.limits.memory"),
            (137, "Error", "epoch 1", "killed from outside"),
            (1, "Error", "Cannot assign a device for operation x: /device:GPU:0", "wants a GPU"),
            (1, "Error", "socket.gaierror: [Errno -2] Name or service not known", "not resolved"),
            (
                1,
                "Error",
                "ValueError: Attempt to convert a value (PerReplica:{",
                "TF_USE_LEGACY_KERAS=1",
            ),
            (
                1,
                "Error",
                "you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset",
                "TF_USE_LEGACY_KERAS=1",
            ),
            (
                1,
                "Error",
                "AttributeError: module 'tensorflow' has no attribute 'Session'",
                "tf.compat.v1",
            ),
            (2, "Error", "python: can't open file '/app/train.py': [Errno 2]", "--mount SRC:/app"),
            (1, "Error", "OSError: [Errno 28] No space left on device", "trainyard clean"),
            (127, "Error", "", "was not found"),
            (139, "Error", "Fatal Python error: Segmentation fault", "crashed"),
        ] {
            let lines = ["before".to_owned(), line.to_owned(), "after".to_owned()];
            let hint = hint(code, reason, &lines).unwrap_or_default();
            assert!(hint.contains(advice), "{line}: {hint}");
        }
        assert_eq!(hint(1, "Error", &["KeyError: 'a'".to_owned()]), None);
    }
}
