//! The reference operator's left-over webhook: found and named.
//!
//! Where that operator was removed incompletely, its webhook refuses or delays every new job. We
//! cannot and must not remove it; we say which command does.

use std::time::Duration;

use tokio::time::sleep;
use trainyard_api::names::REFERENCE_WEBHOOK;

use crate::{
    Health, Metrics,
    calls::{Call, Calls, Turn, Verb},
};

const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(5);

/// Looks for the webhook once and warns if it is there.
pub(crate) async fn look_for_webhook(calls: &Calls, health: &Health, metrics: &Metrics) {
    let resource = "validatingwebhookconfigurations";
    for _ in 0..ATTEMPTS {
        let call = Call {
            verb: Verb::Get,
            resource,
            path: format!("/apis/admissionregistration.k8s.io/v1/{resource}/{REFERENCE_WEBHOOK}"),
            body: Vec::new(),
            turn: Turn::Free,
        };
        match calls.send(call).await {
            Ok(_) => {
                let warning = format!(
                    "the webhook {REFERENCE_WEBHOOK} of another TFJob operator is still installed \
                     and may refuse every new job; if that operator is gone, remove it with: \
                     kubectl delete validatingwebhookconfiguration {REFERENCE_WEBHOOK}"
                );
                tracing::warn!("{warning}");
                metrics.reference_webhook(true);
                health.warn(warning);
                return;
            }
            Err(error) if (400..429).contains(&error.code()) => {
                tracing::debug!(%error, "no webhook of the reference operator");
                return;
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        Options,
        fake::{Fake, Reply},
    };

    #[tokio::test(start_paused = true)]
    async fn it_is_named_with_the_command_that_removes_it() {
        let fake = Fake::new(|_| Reply::Json(200, json!({})));
        let (health, metrics) = (Health::default(), Metrics::default());
        look_for_webhook(&fake.calls(&Options::default()), &health, &metrics).await;
        let command = "kubectl delete validatingwebhookconfiguration \
                       validator.training-operator.kubeflow.org";
        assert!(health.warnings()[0].contains(command));
        assert!(metrics.encode().contains("trainyard_reference_webhook 1"));
        assert_eq!(
            fake.asked()[0].path,
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/\
             validator.training-operator.kubeflow.org"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn without_it_nothing_is_said() {
        for reply in [404, 403] {
            let fake = Fake::new(move |_| Reply::refuse(reply, "NotFound", "x"));
            let health = Health::default();
            look_for_webhook(&fake.calls(&Options::default()), &health, &Metrics::default()).await;
            assert!(health.warnings().is_empty());
            assert_eq!(fake.asked().len(), 1);
        }
    }
}
