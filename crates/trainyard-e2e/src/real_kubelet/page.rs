//! The commands of `docs/install.md`, word for word: the stories run these lines, and a test holds the page to them.

use anyhow::{Context as _, Result, ensure};

/// Installs the operator, and with flags of `trainyard manifests` more.
pub(super) const INSTALL: &str =
    "trainyard manifests --image registry.example/trainyard:0.1.0 | kubectl apply -f -";
/// Removes it, with the flags that it was installed with. The definitions stay, and with them all jobs.
pub(super) const REMOVE: &str =
    "trainyard manifests --crds=false | kubectl delete --ignore-not-found -f -";
/// Removes a definition with all its jobs.
pub(super) const REMOVE_JOBS: &str = "kubectl delete crd tfjobs.kubeflow.org";
/// Tell whether it works.
pub(super) const CHECKS: [&str; 3] = [
    "kubectl -n kubeflow rollout status deployment/trainyard-operator",
    "kubectl -n kubeflow logs -l name=tf-job-operator",
    "kubectl get tfjobs -A",
];

/// The words of a line for kubectl.
pub(super) fn kubectl(line: &str) -> Result<Vec<&str>> {
    words_of("kubectl", line)
}

/// The words of a line for `trainyard`, and those for the kubectl that reads what it writes.
pub(super) fn pipeline(line: &str) -> Result<[Vec<&str>; 2]> {
    let (writer, reader) = line.split_once(" | ").with_context(|| format!("no pipe: {line}"))?;
    Ok([words_of("trainyard", writer)?, words_of("kubectl", reader)?])
}

fn words_of<'a>(program: &str, line: &'a str) -> Result<Vec<&'a str>> {
    let mut words = line.split_whitespace();
    let first = words.next();
    ensure!(first == Some(program), "`{line}` does not begin with {program}");
    Ok(words.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real_kubelet::site::IMAGE;

    const PAGE: &str = include_str!("../../../../docs/install.md");

    /// The page's commands that no story runs: they build what the tier brings along by other means, or give a role
    /// to a group, which the story of a namespace's user gives to an account.
    const OTHERS: [&str; 4] = [
        "cargo install --locked --path crates/trainyard --profile dist",
        "docker build -f deploy/Dockerfile -t registry.example/trainyard:0.1.0 .",
        "docker push registry.example/trainyard:0.1.0",
        "kubectl create clusterrolebinding data-scientists-explain --clusterrole=trainyard-explain --group=data-scientists",
    ];

    #[test]
    fn the_page_tells_to_type_what_the_stories_run_and_nothing_else() {
        let blocks = PAGE.split("```").skip(1).step_by(2);
        let lines =
            blocks.flat_map(str::lines).map(|line| line.split("  #").next().unwrap().trim());
        let mut told: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
        let mut run = [&[INSTALL, REMOVE][..], &CHECKS, &OTHERS].concat();
        told.sort_unstable();
        run.sort_unstable();
        assert_eq!(told, run);
        for words in [
            REMOVE_JOBS,
            "server-side apply works as well",
            "`--crds=false`",
            "`--volcano`",
            "`--scheduler`",
        ] {
            assert!(PAGE.contains(words), "{words}");
        }
        assert!(INSTALL.contains(&format!("--image {IMAGE} ")));
    }

    #[test]
    fn a_line_is_for_one_program_or_for_two() {
        let [trainyard, reader] = pipeline("trainyard manifests -a | kubectl apply -f -").unwrap();
        assert_eq!((trainyard, reader), (vec!["manifests", "-a"], vec!["apply", "-f", "-"]));
        assert_eq!(kubectl("kubectl get pods").unwrap(), ["get", "pods"]);
        assert!(pipeline("kubectl get pods").is_err());
        assert!(kubectl("trainyard manifests").is_err());
    }
}
