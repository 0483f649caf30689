//! The program of a container and its arguments: what the pod says over what the image says.
//!
//! Must not know whether the program exists.

use k8s_openapi::api::core::v1::Container;

use crate::env::expansion::{expand, reference};
use crate::env::{EnvError, Environment};

/// `command` replaces the image's entrypoint and its command; `args` alone replaces its command.
pub(crate) fn argv(
    container: &Container,
    entrypoint: &[String],
    cmd: &[String],
    env: &Environment,
) -> Result<Vec<String>, EnvError> {
    let expanded = |written: &Option<Vec<String>>| -> Vec<String> {
        let lookup = |name: &str| env.declared(name).map_or_else(|| reference(name), str::to_owned);
        written.iter().flatten().map(|word| expand(word, lookup)).collect()
    };
    let command = expanded(&container.command);
    let args = expanded(&container.args);
    let words: Vec<String> = match (command.is_empty(), args.is_empty()) {
        (false, _) => command.into_iter().chain(args).collect(),
        (true, false) => entrypoint.iter().cloned().chain(args).collect(),
        (true, true) => entrypoint.iter().chain(cmd).cloned().collect(),
    };
    if words.is_empty() {
        return Err(EnvError::NoCommand);
    }
    match words.iter().position(|word| word.contains('\0')) {
        Some(position) => Err(EnvError::Argument { position }),
        None => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::argv;
    use crate::env::Environment;
    use k8s_openapi::api::core::v1::Container;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn container(command: &str, args: &str) -> Container {
        let list = |text: &str| (!text.is_empty()).then(|| words(text));
        Container { command: list(command), args: list(args), ..Container::default() }
    }

    #[test]
    fn the_pod_stands_over_the_image() {
        let image = [("HOME".to_owned(), "/root".to_owned())];
        let mut env = Environment::new(&image);
        env.set("N", "3");
        for (command, args, entrypoint, cmd, expected) in [
            ("", "", "/entry", "default", "/entry default"),
            ("", "", "", "bash", "bash"),
            ("python t.py", "", "/entry", "default", "python t.py"),
            ("python", "t.py --n=$(N)", "/entry", "default", "python t.py --n=3"),
            ("", "--n=$(N)", "/entry", "default", "/entry --n=3"),
            ("", "only", "", "default", "only"),
            ("$(N) $$(N) $(NO) $(HOME)", "", "", "", "3 $(N) $(NO) $(HOME)"),
            ("", "", "/entry", "$(N)", "/entry $(N)"),
        ] {
            let container = container(command, args);
            let argv = argv(&container, &words(entrypoint), &words(cmd), &env).unwrap();
            assert_eq!(argv.join(" "), expected);
        }
    }

    #[test]
    fn nothing_to_run_is_an_error() {
        let env = Environment::new(&[]);
        let error = argv(&container("", ""), &[], &[], &env).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            ("CreateContainerError", "no command specified")
        );
        let zero =
            Container { command: Some(vec!["sh".into(), "a\0b".into()]), ..Container::default() };
        let error = argv(&zero, &[], &[], &env).unwrap_err();
        assert_eq!(error.kind(), "CreateContainerError");
        assert!(error.to_string().starts_with("argument 1 "), "{error}");
    }
}
