//! The table of checks: at which level each belongs, since which version, and which weaker one it
//! takes the place of.
//!
//! Owns the order in which faults are told. What a check looks at is in the files beside.

use super::labels::{Demand, Level, Version};
use super::words::{Subject, Violation};
use super::{host, privileges, profiles};

type Judge = fn(Subject<'_>) -> Option<Violation>;

/// One check.
struct Check {
    /// Its name in Kubernetes, by which the checks of a level are ordered.
    id: &'static str,
    /// Since which minor version it judges how, the oldest first.
    editions: &'static [(u32, Judge)],
    /// The check of the lower level that it makes needless.
    instead_of: &'static str,
}

const fn check(id: &'static str, editions: &'static [(u32, Judge)]) -> Check {
    Check { id, editions, instead_of: "" }
}

const fn stricter(
    id: &'static str,
    instead_of: &'static str,
    editions: &'static [(u32, Judge)],
) -> Check {
    Check { id, editions, instead_of }
}

const BASELINE: &[Check] = &[
    check("appArmorProfile", &[(0, profiles::app_armor)]),
    check("capabilities_baseline", &[(0, privileges::usual_capabilities)]),
    check("hostNamespaces", &[(0, host::namespaces)]),
    check("hostPathVolumes", &[(0, host::paths)]),
    check("hostPorts", &[(0, host::ports)]),
    check("hostProbesAndHostLifecycle", &[(34, host::probes)]),
    check("privileged", &[(0, privileges::privileged)]),
    check(
        "procMount",
        &[(0, privileges::proc_mount), (35, |pod| unless_own_users(pod, privileges::proc_mount))],
    ),
    check("seLinuxOptions", &[(0, profiles::selinux_before), (31, profiles::selinux_since_31)]),
    check(
        "seccompProfile_baseline",
        &[(0, profiles::seccomp_annotations), (19, profiles::seccomp)],
    ),
    check(
        "sysctls",
        &[
            (0, |pod| host::sysctls(pod, &host::SYSCTLS[..1])),
            (27, |pod| host::sysctls(pod, &host::SYSCTLS[..2])),
            (29, |pod| host::sysctls(pod, &host::SYSCTLS[..3])),
            (32, |pod| host::sysctls(pod, &host::SYSCTLS)),
        ],
    ),
    check("windowsHostProcess", &[(0, privileges::host_process)]),
];

const RESTRICTED: &[Check] = &[
    check(
        "allowPrivilegeEscalation",
        &[(8, privileges::escalation), (25, |pod| unless_windows(pod, privileges::escalation))],
    ),
    stricter(
        "capabilities_restricted",
        "capabilities_baseline",
        &[
            (22, privileges::few_capabilities),
            (25, |pod| unless_windows(pod, privileges::few_capabilities)),
        ],
    ),
    stricter("procMount_restricted", "procMount", &[(35, privileges::proc_mount)]),
    stricter("restrictedVolumes", "hostPathVolumes", &[(0, host::volumes)]),
    check(
        "runAsNonRoot",
        &[(0, privileges::not_root), (35, |pod| unless_own_users(pod, privileges::not_root))],
    ),
    check(
        "runAsUser",
        &[
            (23, privileges::not_user_zero),
            (35, |pod| unless_own_users(pod, privileges::not_user_zero)),
        ],
    ),
    stricter(
        "seccompProfile_restricted",
        "seccompProfile_baseline",
        &[
            (19, profiles::seccomp_required),
            (25, |pod| unless_windows(pod, profiles::seccomp_required)),
        ],
    ),
];

/// Pods whose users are not the machine's are let more.
fn unless_own_users(subject: Subject<'_>, judge: Judge) -> Option<Violation> {
    if subject.has_own_users() { None } else { judge(subject) }
}

/// Pods for Windows may not set these fields at all.
fn unless_windows(subject: Subject<'_>, judge: Judge) -> Option<Violation> {
    if subject.is_for_windows() { None } else { judge(subject) }
}

impl Check {
    /// How it judges by the rules of a version; none where it is younger.
    fn judge(&self, minor: u32) -> Option<Judge> {
        let editions = self.editions.iter().rev();
        editions.into_iter().find(|(since, _)| *since <= minor).map(|(_, judge)| *judge)
    }
}

/// Everything that a demand holds against a pod.
pub(super) fn violations(demand: Demand, subject: Subject<'_>) -> Vec<Violation> {
    let minor = match demand.version {
        Version::Minor(minor) => minor,
        Version::Latest => u32::MAX,
    };
    let strict: &[Check] = if demand.level == Level::Restricted { RESTRICTED } else { &[] };
    let usual: &[Check] = if demand.level == Level::Privileged { &[] } else { BASELINE };
    let is_replaced =
        |id: &str| strict.iter().any(|one| one.instead_of == id && one.judge(minor).is_some());
    let asked = usual.iter().filter(|check| !is_replaced(check.id)).chain(strict);
    asked.filter_map(|check| check.judge(minor)?(subject)).collect()
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
