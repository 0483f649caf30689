//! The rules of names, row by row.

use serde_json::json;

use super::*;
use crate::net::names::{Names, tests::yard};

fn answer(texts: &[&str]) -> Answer {
    Answer::Found(texts.iter().map(|text| text.parse().unwrap()).collect())
}

#[test]
fn names_mean_what_the_cluster_says() {
    let names = yard();
    for (query, expected) in [
        ("kubernetes.default.svc.cluster.local", answer(&["10.96.0.1"])),
        ("kubernetes.default.svc.cluster.local.", answer(&["10.96.0.1"])),
        ("KUBERNETES.Default.svc.Cluster.Local", answer(&["10.96.0.1"])),
        ("kubernetes.default.svc", answer(&["10.96.0.1"])),
        // Published before it is ready.
        ("mnist-worker-0.default.svc.cluster.local", answer(&["10.77.0.5"])),
        ("10-77-0-5.mnist-worker-0.default.svc.cluster.local", answer(&["10.77.0.5"])),
        // Only the ready ones, in order.
        ("group.team.svc.cluster.local", answer(&["10.77.0.6", "10.77.0.8", "10.77.0.9"])),
        ("a.group.team.svc.cluster.local", answer(&["10.77.0.8"])),
        ("A.group.team.svc.cluster.local", answer(&["10.77.0.8"])),
        ("10-77-0-6.group.team.svc.cluster.local", answer(&["10.77.0.6"])),
        // Not ready, has a hostname instead, is not there.
        ("c.group.team.svc.cluster.local", Answer::Unknown),
        ("10-77-0-8.group.team.svc.cluster.local", Answer::Unknown),
        ("d.group.team.svc.cluster.local", Answer::Unknown),
        ("empty.team.svc.cluster.local", Answer::Unknown),
        ("group.default.svc.cluster.local", Answer::Unknown),
        ("group.team.svc", answer(&["10.77.0.6", "10.77.0.8", "10.77.0.9"])),
        ("gone.team.svc", Answer::Unknown),
        ("data.team.svc.cluster.local", Answer::Alias("data.example.com".into())),
        // Pods by address.
        ("10-77-0-5.default.pod.cluster.local", answer(&["10.77.0.5"])),
        ("10-77-0-555.default.pod.cluster.local", Answer::Unknown),
        ("x.default.pod.cluster.local", Answer::Unknown),
        // Names that only have names below them.
        ("cluster.local", answer(&[])),
        ("svc.cluster.local", answer(&[])),
        ("default.svc.cluster.local", answer(&[])),
        ("tea.svc.cluster.local", Answer::Unknown),
        ("default.pod.cluster.local", answer(&[])),
        // Nodes, bare and as a resolver with a search list tries them.
        ("node-a", answer(&["10.77.0.2"])),
        ("NODE-A.", answer(&["10.77.0.2"])),
        ("node-a.team.svc.cluster.local", answer(&["10.77.0.2"])),
        ("node-a.svc.cluster.local", answer(&["10.77.0.2"])),
        ("node-a.cluster.local", answer(&["10.77.0.2"])),
        ("b.lab", answer(&["10.77.0.3"])),
        ("b.lab.default.svc.cluster.local", answer(&["10.77.0.3"])),
        ("b.lab.cluster.local", answer(&["10.77.0.3"])),
        ("lab", Answer::Elsewhere),
        // Not ours, however much they look so.
        ("pypi.example.org", Answer::Elsewhere),
        ("mycluster.local", Answer::Elsewhere),
        ("mnist-worker-0", Answer::Elsewhere),
        ("mnist-worker-0.default", Answer::Elsewhere),
        ("svc", Answer::Elsewhere),
        ("", Answer::Elsewhere),
        (".", Answer::Elsewhere),
        // Ours, however odd.
        (".cluster.local", answer(&[])),
        ("..cluster.local", Answer::Unknown),
        ("a.b.c.d.e.svc.cluster.local", Answer::Unknown),
        ("team/group.svc.cluster.local", Answer::Unknown),
        ("\u{e9}.svc.cluster.local", Answer::Unknown),
    ] {
        assert_eq!(names.lookup(query), expected, "{query:?}");
    }
}

#[test]
fn a_service_wins_over_a_node_of_its_name() {
    let names = yard();
    names.set_nodes(vec![("group".into(), Ipv4Addr::new(10, 77, 0, 4))]);
    assert_eq!(
        names.lookup("group.team.svc.cluster.local"),
        answer(&["10.77.0.6", "10.77.0.8", "10.77.0.9"])
    );
    assert_eq!(names.lookup("group.default.svc.cluster.local"), answer(&["10.77.0.4"]));
    // Told anew, the earlier nodes are gone.
    assert_eq!(names.lookup("node-a"), Answer::Elsewhere);
}

#[test]
fn addresses_have_names() {
    let names = yard();
    let owner = |text: &str| names.owner(text.parse().unwrap());
    let known = |name: &str| Owner::Known(vec![name.into()]);
    assert_eq!(owner("10.96.0.1"), known("kubernetes.default.svc.cluster.local"));
    assert_eq!(owner("10.77.0.8"), known("a.group.team.svc.cluster.local"));
    assert_eq!(owner("10.77.0.5"), known("10-77-0-5.mnist-worker-0.default.svc.cluster.local"));
    assert_eq!(owner("10.77.0.2"), known("node-a"));
    assert_eq!(owner("10.77.0.7"), Owner::Nameless);
    assert_eq!(owner("10.77.9.9"), Owner::Nameless);
    assert_eq!(owner("192.0.2.1"), Owner::Elsewhere);
}

fn slice(service: &str, address: &str) -> EndpointSlice {
    serde_json::from_value(json!({
        "metadata": {"name": "s", "namespace": "n", "labels": {SERVICE_NAME: service}},
        "addressType": "IPv4", "endpoints": [{"addresses": [address]}, {"addresses": ["rubbish"]}, {"addresses": []}]
    }))
    .unwrap()
}

fn headless(name: &str) -> ApiService {
    serde_json::from_value(
        json!({"metadata": {"name": name, "namespace": "n"}, "spec": {"clusterIP": "None"}}),
    )
    .unwrap()
}

#[test]
fn names_vanish_with_what_they_stood_for() {
    let mut table = Table::default();
    table.put_service(&headless("one"));
    table.put_service(&headless("two"));
    table.put_slice(&slice("one", "10.0.0.1"));
    assert_eq!(table.lookup("one.n.svc"), answer(&["10.0.0.1"]));
    // The same slice now names another service and address.
    table.put_slice(&slice("two", "10.0.0.2"));
    assert_eq!(table.lookup("one.n.svc"), Answer::Unknown);
    assert_eq!(table.lookup("two.n.svc"), answer(&["10.0.0.2"]));
    table.remove_slice("n/s");
    assert_eq!(table.lookup("two.n.svc"), Answer::Unknown);
    assert!(table.endpoints.is_empty() && table.slices.is_empty());

    table.put_slice(&slice("one", "10.0.0.1"));
    table.keep_services(&BTreeSet::from(["n/one".into()]));
    assert_eq!(table.services.len(), 1);
    table.keep_slices(&BTreeSet::new());
    assert_eq!(table.lookup("one.n.svc"), Answer::Unknown);
    assert!(table.endpoints.is_empty() && table.slices.is_empty());
    table.remove_service("n/one");
    assert_eq!(table.lookup("n.svc"), Answer::Unknown);
}

#[test]
fn hosts_lines_hold_every_form_of_a_name() {
    let lines = yard().hosts_lines("team");
    let expected = "\
10.96.0.1\tkubernetes.default.svc.cluster.local\tkubernetes.default.svc\tkubernetes.default
10.77.0.5\tmnist-worker-0.default.svc.cluster.local\tmnist-worker-0.default.svc\tmnist-worker-0.default
10.77.0.6\tgroup.team.svc.cluster.local\tgroup.team.svc\tgroup.team\tgroup
10.77.0.8\tgroup.team.svc.cluster.local\tgroup.team.svc\tgroup.team\tgroup
10.77.0.9\tgroup.team.svc.cluster.local\tgroup.team.svc\tgroup.team\tgroup
10.77.0.9\tb.group.team.svc.cluster.local\tb.group.team.svc\tb.group.team\tb.group
10.77.0.8\ta.group.team.svc.cluster.local\ta.group.team.svc\ta.group.team\ta.group
10.77.0.3\tb.lab
10.77.0.2\tnode-a
";
    assert_eq!(lines, expected);
    assert_eq!(Names::new().hosts_lines("team"), "");
}
