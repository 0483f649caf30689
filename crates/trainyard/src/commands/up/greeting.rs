//! What a newcomer needs to go on.

use std::fmt::Write as _;
use std::path::Path;

use super::CONTEXT;
use crate::yard::folder::Folder;

/// The words at the start; for people, so not on standard output.
pub(super) fn text(folder: &Folder, kubeconfig: Option<&Path>, is_own: bool) -> String {
    let mut text = String::new();
    // Writing into a text cannot fail.
    let _ = match kubeconfig {
        Some(file) if is_own => writeln!(
            text,
            "kubectl:  export KUBECONFIG={}\n          kubectl get nodes",
            file.display()
        ),
        Some(file) => writeln!(
            text,
            "kubectl:  kubectl get nodes          (context {CONTEXT:?} in {})",
            file.display()
        ),
        None => writeln!(
            text,
            "kubectl:  kubectl --kubeconfig {} get nodes",
            folder.kubeconfig().display()
        ),
    };
    let _ = writeln!(text, "submit:   kubectl create -f tfjob.yaml && kubectl get tfjob -w");
    let _ = writeln!(text, "kept in:  {}", folder.path().display());
    let _ = writeln!(text, "end:      Ctrl-C, or trainyard down");
    text
}
