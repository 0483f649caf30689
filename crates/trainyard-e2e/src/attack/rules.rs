//! Definitions whose rules would work for minutes, or build more than the machine holds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::ground::Ground;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!["rules": rules_that_build_too_much, loops_without_a_bound]
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// An object is refused after so long, at most, on a loaded machine without optimization.
const REFUSED: Duration = Duration::from_secs(20);
/// Others are answered so soon beside it.
const BESIDE: Duration = Duration::from_secs(8);
/// So many MB more than before may be in use meanwhile; before, it was 800 and 2,600.
const MORE: f64 = 500.0;

/// Names a definition, and the rule in it. Seen to succeed before: the first took over 15 seconds and
/// 837 MB; the second 9 seconds and 2.6 GB, while others waited four seconds, and its object was taken.
fn rules() -> [(&'static str, String); 4] {
    let doubled = (0..12).fold("[self.s]".to_owned(), |text, _| format!("{text}.map(a, a + a)"));
    [
        ("concat", "self.l.map(a, self.s + self.s + self.s + self.s).size() > 0".to_owned()),
        ("chained", format!("{doubled}.size() > 0")),
        ("joined", "[self.s.split('')].all(l, self.l.all(a, l.join('xxxxxxxx') != ''))".to_owned()),
        (
            "nested",
            "lists.range(100000).map(i, i).all(a, lists.range(100000).all(b, a + b >= 0))"
                .to_owned(),
        ),
    ]
}

fn definition(kind: &str, rule: &str) -> Value {
    let spec = json!({"type": "object", "properties": {
        "s": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": rule}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{kind}s.attack.example")},
        "spec": {"group": "attack.example", "scope": "Namespaced",
            "names": {"plural": format!("{kind}s"), "singular": kind, "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

async fn rules_that_build_too_much(ground: &Ground) -> Result<()> {
    let before = ground.lone.memory()?;
    let numbers: Vec<u32> = (0..3_000).collect();
    for (kind, rule) in rules() {
        let body = definition(kind, &rule).to_string();
        ground.must(Method::POST, DEFINITIONS, &body, &[201, 409]).await?;
        let path = format!("/apis/attack.example/v1/namespaces/attack/{kind}s");
        let object = json!({"apiVersion": "attack.example/v1", "kind": kind, "metadata": {"name": "a"},
            "spec": {"s": "x".repeat(200_000), "l": numbers}});
        for _ in 0..50 {
            if ground.door().ask(Method::GET, &path, "").await?.code == 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let began = Instant::now();
        let asking = tokio::spawn({
            let (door, body) = (ground.door().clone(), object.to_string());
            async move { door.ask(Method::POST, &path, &body).await }
        });
        while !asking.is_finished() {
            let beside = tokio::time::timeout(BESIDE, ground.door().must_answer()).await;
            beside.with_context(|| format!("{kind}: nobody else is answered"))??;
            let memory = ground.lone.memory()?;
            ensure!(memory < before + MORE, "{kind}: {memory:.0} MB, {before:.0} before");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let answer = asking.await??;
        let said = answer.value()["message"].as_str().unwrap_or_default().to_owned();
        ensure!(
            answer.code == 422 && (said.contains("cost budget") || said.contains("too long")),
            "{kind}: {} {said:.300}",
            answer.code
        );
        ensure!(began.elapsed() < REFUSED, "{kind} took {:?}", began.elapsed());
    }
    Ok(())
}

/// As Kubernetes does: the definition is refused. Seen to be taken before.
async fn loops_without_a_bound(ground: &Ground) -> Result<()> {
    let body = definition("looped", "self.l.all(a, self.l.all(b, a + b >= 0))").to_string();
    let refused = ground.must(Method::POST, DEFINITIONS, &body, &[422]).await?;
    let said = refused["message"].as_str().unwrap_or_default();
    ensure!(said.contains("estimated rule cost exceeds budget"), "{said:.400}");
    Ok(())
}
