//! What a security context means here: who a container runs as and what it may do. Pure. What cannot
//! be honoured is refused in words, never passed over.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, Pod, PodSecurityContext, PodSpec, SecurityContext,
};
use trainyard_holder::protocol::{Privileges, User};

/// Rights that uid 0 keeps unless told otherwise: what containers are used to, without those that
/// make devices, write the kernel's logs or send packets in another pod's name.
const USUAL: [&str; 10] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Rights that stay inside the sandbox and may be asked for. `SYS_PTRACE` is not among them, because
/// the first process of a container is the node's and not the container's, nor `SYS_NICE`, with
/// which a program comes before everything else on the machine.
const GRANTABLE: [&str; 3] = ["IPC_LOCK", "NET_ADMIN", "NET_RAW"];

/// A context that cannot be honoured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecurityError {
    /// The container must not be root, and would be.
    #[error(
        "container has runAsNonRoot and image will run as root (container: {0}); set securityContext.runAsUser to another id"
    )]
    RunsAsRoot(String),
    /// Not done here.
    #[error("{field} cannot be honoured here: {why}")]
    Unsupported {
        /// Where it stands.
        field: String,
        /// Why, and what to do.
        why: &'static str,
    },
}

/// Checks what the pod as a whole asks for.
pub(crate) fn check_pod(spec: &PodSpec) -> Result<(), SecurityError> {
    let refuse =
        |field: &str, why| Err(SecurityError::Unsupported { field: field.to_owned(), why });
    if spec.host_pid == Some(true) {
        return refuse("spec.hostPID", "a pod never sees the machine's processes; remove it");
    }
    if spec.host_ipc == Some(true) {
        return refuse("spec.hostIPC", "a pod never shares the machine's memory; remove it");
    }
    let Some(context) = &spec.security_context else { return Ok(()) };
    if context.sysctls.as_ref().is_some_and(|sysctls| !sysctls.is_empty()) {
        return refuse("spec.securityContext.sysctls", "kernel settings are left alone; remove it");
    }
    if context.windows_options.is_some() {
        return refuse("spec.securityContext.windowsOptions", "this node runs Linux");
    }
    Ok(())
}

/// Who a container runs as, and with which rights. `image_user` is the image's own choice.
pub(crate) fn context(
    pod: &Pod,
    container: &Container,
    image_user: Option<u32>,
) -> Result<(User, Privileges), SecurityError> {
    context_given(pod, container, image_user, rustix::process::geteuid().is_root())
}

/// The same for an agent that is root, or is not.
fn context_given(
    pod: &Pod,
    container: &Container,
    image_user: Option<u32>,
    is_root: bool,
) -> Result<(User, Privileges), SecurityError> {
    let whole = pod.spec.as_ref().and_then(|spec| spec.security_context.clone());
    let whole = whole.unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let host_network = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
    refuse_what_cannot_be(container, &whole, &own)?;
    let id = |id: i64| u32::try_from(id).unwrap_or(u32::MAX);
    let uid = own.run_as_user.or(whole.run_as_user).map(id).or(image_user).unwrap_or(0);
    let non_root = own.run_as_non_root.or(whole.run_as_non_root).unwrap_or(false);
    if non_root && uid == 0 {
        return Err(SecurityError::RunsAsRoot(container.name.clone()));
    }
    // A user has one group to give. All ids inside are the same outside, so that volumes can be
    // read without it; that it is not set on them is said where they are made.
    let fs_group = whole.fs_group.filter(|_| is_root);
    let mut groups: Vec<u32> =
        whole.supplemental_groups.iter().flatten().copied().chain(fs_group).map(id).collect();
    groups.dedup();
    let user = User { uid, gid: own.run_as_group.or(whole.run_as_group).map_or(0, id), groups };
    let seccomp = own.seccomp_profile.as_ref().or(whole.seccomp_profile.as_ref());
    let privileges = Privileges {
        capabilities: capabilities(container, own.capabilities.as_ref(), host_network)?,
        no_new_privileges: own.allow_privilege_escalation != Some(true),
        seccomp: seccomp.is_none_or(|profile| profile.type_ != "Unconfined"),
        read_only_root: own.read_only_root_filesystem == Some(true),
    };
    Ok((user, privileges))
}

fn refuse_what_cannot_be(
    container: &Container,
    whole: &PodSecurityContext,
    own: &SecurityContext,
) -> Result<(), SecurityError> {
    let refuse = |field: &str, why| {
        let field = format!("securityContext.{field} of container {}", container.name);
        Err(SecurityError::Unsupported { field, why })
    };
    if own.privileged == Some(true) {
        return refuse("privileged", "no pod gets the machine's own rights; remove it");
    }
    if own.proc_mount.as_deref().is_some_and(|mount| mount != "Default") {
        return refuse("procMount", "only Default is mounted");
    }
    let seccomp = own.seccomp_profile.as_ref().or(whole.seccomp_profile.as_ref());
    if seccomp.is_some_and(|profile| profile.type_ == "Localhost") {
        return refuse("seccompProfile", "use RuntimeDefault or Unconfined");
    }
    let apparmor = own.app_armor_profile.as_ref().or(whole.app_armor_profile.as_ref());
    if apparmor.is_some_and(|profile| profile.type_ == "Localhost") {
        return refuse("appArmorProfile", "AppArmor profiles are not loaded; use RuntimeDefault");
    }
    Ok(())
}

/// Why a capability is not given.
fn ungranted(name: &str) -> &'static str {
    match name {
        "SYS_PTRACE" => {
            "it would reach beyond the sandbox; debuggers and profilers reach programs of their own \
             user without it"
        }
        "SYS_NICE" => {
            "it would reach beyond the sandbox: programs could come before all others on the machine; \
             remove it"
        }
        _ => {
            "it would reach beyond the sandbox; what may be added is IPC_LOCK, NET_ADMIN and NET_RAW"
        }
    }
}

fn capabilities(
    container: &Container,
    asked: Option<&Capabilities>,
    host_network: bool,
) -> Result<Vec<String>, SecurityError> {
    let mut kept: BTreeSet<String> = USUAL.iter().map(|&name| name.to_owned()).collect();
    let bare = |name: &String| {
        let name = name.to_ascii_uppercase();
        name.strip_prefix("CAP_").map(str::to_owned).unwrap_or(name)
    };
    let dropped = asked.and_then(|asked| asked.drop.as_ref());
    for name in dropped.into_iter().flatten().map(bare) {
        if name == "ALL" {
            kept.clear();
        }
        kept.remove(&name);
    }
    let added = asked.and_then(|asked| asked.add.as_ref());
    for name in added.into_iter().flatten().map(bare) {
        if !USUAL.contains(&name.as_str()) && !GRANTABLE.contains(&name.as_str()) {
            return Err(SecurityError::Unsupported {
                field: format!("capability {name} of container {}", container.name),
                why: ungranted(&name),
            });
        }
        if name == "NET_ADMIN" && host_network {
            return Err(SecurityError::Unsupported {
                field: format!("capability NET_ADMIN of container {}", container.name),
                why: "with hostNetwork it would change the network of all pods of the node that have \
                      that; remove one of the two",
            });
        }
        kept.insert(name);
    }
    Ok(kept.into_iter().map(|name| format!("CAP_{name}")).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(pod_context: &Value, own: &Value) -> Result<(User, Privileges), SecurityError> {
        read_as(pod_context, own, true)
    }

    fn read_as(
        pod_context: &Value,
        own: &Value,
        is_root: bool,
    ) -> Result<(User, Privileges), SecurityError> {
        let pod: Pod = serde_json::from_value(json!({
            "spec": {"securityContext": pod_context, "containers": [
                {"name": "c", "securityContext": own},
            ]},
        }))
        .unwrap();
        let container = pod.spec.as_ref().unwrap().containers[0].clone();
        context_given(&pod, &container, None, is_root)
    }

    #[test]
    fn a_user_gives_no_group_for_volumes() {
        let whole = json!({"fsGroup": 9, "supplementalGroups": [10]});
        let (user, _) = read_as(&whole, &json!({}), false).unwrap();
        assert_eq!(user.groups, [10]);
    }

    #[test]
    fn the_containers_own_words_win() {
        let (user, privileges) = read(
            &json!({"runAsUser": 7, "runAsGroup": 8, "fsGroup": 9, "supplementalGroups": [10]}),
            &json!({"runAsUser": 5, "readOnlyRootFilesystem": true}),
        )
        .unwrap();
        assert_eq!(user, User { uid: 5, gid: 8, groups: vec![10, 9] });
        assert!(privileges.read_only_root && privileges.no_new_privileges && privileges.seccomp);
    }

    #[test]
    fn rights_are_dropped_before_they_are_added() {
        let asked = json!({"capabilities": {"drop": ["ALL"], "add": ["CAP_NET_RAW", "ipc_lock"]}});
        let (_, privileges) = read(&json!({}), &asked).unwrap();
        assert_eq!(privileges.capabilities, ["CAP_IPC_LOCK", "CAP_NET_RAW"]);
        let (_, usual) = read(&json!({}), &json!({})).unwrap();
        assert_eq!(usual.capabilities.len(), USUAL.len());
        assert!(!usual.capabilities.contains(&"CAP_NET_RAW".to_owned()));
    }

    #[test]
    fn what_reaches_beyond_the_sandbox_is_never_added() {
        for name in ["SYS_PTRACE", "sys_nice", "CAP_SYS_ADMIN", "DAC_READ_SEARCH", "MKNOD", "ALL"] {
            let error = read(&json!({}), &json!({"capabilities": {"add": [name]}})).unwrap_err();
            assert!(error.to_string().contains("beyond the sandbox"), "{error}");
        }
        let pod: Pod = serde_json::from_value(json!({"spec": {"hostNetwork": true, "containers": [
            {"name": "c", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}},
        ]}}))
        .unwrap();
        let container = pod.spec.as_ref().unwrap().containers[0].clone();
        let error = context_given(&pod, &container, None, true).unwrap_err().to_string();
        assert!(error.contains("hostNetwork"), "{error}");
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        for (pod, own, words) in [
            (json!({}), json!({"privileged": true}), "securityContext.privileged of container c"),
            (json!({}), json!({"capabilities": {"add": ["SYS_ADMIN"]}}), "capability SYS_ADMIN"),
            (json!({"seccompProfile": {"type": "Localhost"}}), json!({}), "seccompProfile"),
            (json!({"runAsNonRoot": true}), json!({}), "runAsNonRoot and image will run as root"),
            (json!({}), json!({"procMount": "Unmasked"}), "procMount"),
        ] {
            let error = read(&pod, &own).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(read(&json!({"runAsNonRoot": true, "runAsUser": 1}), &json!({})).is_ok());
    }

    #[test]
    fn pods_do_not_share_the_machines_processes() {
        let spec = PodSpec { host_pid: Some(true), ..PodSpec::default() };
        assert!(check_pod(&spec).unwrap_err().to_string().contains("spec.hostPID"));
        assert!(check_pod(&PodSpec::default()).is_ok());
    }
}
