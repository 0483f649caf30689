//! What a kubelet publishes of a pod that is being deleted. Pure.

use serde_json::Value;

use super::{CONTAINERS, Doing, End, INIT, Moment, conditions, container, list, turn};
use crate::seen::text;

/// What a kubelet publishes of a pod that is being deleted, until nothing of it is left; what still ran ends
/// like this.
pub(in crate::kubelet) fn farewell<'a>(pod: &Value, end: End<'a>) -> Vec<Moment<'a>> {
    let status = &pod["status"];
    let failed = Moment { phase: Some("Failed"), ..Moment::default() };
    let containers = list(&status[CONTAINERS[1]]);
    if ["Succeeded", "Failed"].contains(&text(&status["phase"])) {
        // Its kubelet may have said so before it had ended.
        let ends = Moment { phase: failed.phase, ..Moment::over(end) };
        return if containers.iter().any(container::runs) { vec![ends] } else { Vec::new() };
    }
    if containers.iter().any(container::has_run) {
        return vec![Moment::over(end)];
    }
    let init = list(&status[INIT[1]]);
    if let Some(turn) = init.iter().position(container::runs) {
        return vec![Moment { init: Some((turn, Doing::Ended(end))), ..failed }];
    }
    let unknown = Doing::Ended(End::unknown());
    let has_init = !list(&pod["spec"][INIT[0]]).is_empty();
    let last = if init.iter().any(container::has_run) || !has_init {
        let is_initialized = init.iter().all(|status| container::exit_code(status) == Some(0));
        let lost = if is_initialized { unknown } else { Doing::Same };
        Moment { main: lost, beside: lost, ..failed }
    } else {
        Moment { init: Some((0, unknown)), ..failed }
    };
    // Whatever kept it from being started is no longer of interest.
    let waits = Doing::Waits(turn(pod), "");
    let waits = |sandbox| Moment { main: waits, beside: waits, ..Moment::pending(sandbox) };
    let sandbox = conditions::holds(pod, "PodReadyToStartContainers");
    vec![waits(sandbox), waits(false), last]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Why;
    use super::super::tests::{ALL_RUN, after, codes, pod};
    use super::*;

    #[test]
    fn a_kubelet_says_farewell_by_what_the_pod_did() {
        let farewell = |pod: Value| {
            let moments = farewell(&pod, End::by(143));
            after(pod, &moments)
        };
        let running = farewell(after(pod(), &[ALL_RUN]));
        assert_eq!(
            (&running["status"]["phase"], codes(&running)[1]),
            (&json!("Failed"), Some(143))
        );
        let why = Why { reason: "Evicted", message: "", is_marked: false };
        let thrown_out = farewell(after(pod(), &[ALL_RUN, Moment::stopping(why)]));
        assert_eq!(
            (&thrown_out["status"]["phase"], codes(&thrown_out)[1]),
            (&json!("Failed"), Some(143))
        );
        let never = farewell(after(pod(), &[Moment::pending(true)]));
        assert_eq!(codes(&never), [Some(137), Some(137)]);
        let mut first = pod();
        first["spec"]["initContainers"] = json!([{"name": "fetch"}]);
        let fetches = farewell(after(first.clone(), &[Moment::initializing(0, Doing::Runs)]));
        let init = &fetches["status"]["initContainerStatuses"][0];
        assert_eq!((container::exit_code(init), codes(&fetches)[0]), (Some(143), None));
        let never = farewell(first);
        let init = &never["status"]["initContainerStatuses"][0];
        assert_eq!((container::exit_code(init), codes(&never)[0]), (Some(137), None));
        assert!(super::farewell(&never, End::by(143)).is_empty());
    }
}
