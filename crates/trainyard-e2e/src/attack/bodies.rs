//! Bodies that are too large, too deep or no objects at all.

use std::sync::Arc;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::ground::{Ground, MAPS, codes};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!["bodies":
        over_three_megabytes,
        endless_and_chunked,
        an_object_too_large,
        nested_too_deep,
        no_objects,
        no_text,
        containers_by_the_million,
        long_lists,
        numbers_by_the_million,
        binary_bombs,
        patches_that_copy,
        patches_of_many_operations,
        patches_too_deep,
        selectors_of_all_sizes,
        pages_of_all_sizes,
    ]
}

async fn over_three_megabytes(ground: &Ground) -> Result<()> {
    let body = format!("{{\"data\":\"{}\"}}", "x".repeat(3 * 1024 * 1024));
    let head = ground.head("POST", MAPS);
    let asked = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let reply = ground.say(asked.as_bytes()).await?;
    ensure!(codes(&reply) == [413], "{reply:.300}");
    ensure!(reply.contains("Request entity too large"), "{reply:.600}");
    Ok(())
}

async fn endless_and_chunked(ground: &Ground) -> Result<()> {
    let mut asked = ground.head("POST", MAPS);
    asked += "Transfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    asked += &chunk.repeat(100);
    let reply = ground.say(asked.as_bytes()).await?;
    ensure!(codes(&reply) == [413], "{reply:.300}");
    Ok(())
}

async fn an_object_too_large(ground: &Ground) -> Result<()> {
    let map = json!({"metadata": {"name": "large"}, "data": {"a": "x".repeat(1_600_000)}});
    // A map has a bound of its own, which is smaller.
    ground.must(Method::POST, MAPS, &map.to_string(), &[413, 422]).await?;
    let long =
        json!({"metadata": {"name": "long"}, "description": "x".repeat(1_600_000), "value": 1});
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    ground.must(Method::POST, path, &long.to_string(), &[413]).await?;
    Ok(())
}

async fn nested_too_deep(ground: &Ground) -> Result<()> {
    for (open, depth) in [("[", 1_000_000), ("{\"a\":", 500_000), ("[", 200), ("{\"a\":", 129)] {
        ground.must(Method::POST, MAPS, &open.repeat(depth), &[400]).await?;
    }
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    ground.must(Method::POST, MAPS, &format!("{{\"data\":{deep}}}"), &[400]).await?;
    Ok(())
}

async fn no_objects(ground: &Ground) -> Result<()> {
    for body in ["", "null", "1", "\"a\"", "[]", "{", "{}{}", "{\"metadata\":[]}", "{\"kind\":1}"] {
        ground.must(Method::POST, MAPS, body, &[400, 422]).await?;
    }
    let mut talk = ground.door().open().await?;
    for media in ["text/html", "application/yaml", "x", "application/cbor"] {
        let answer = talk.begin(Method::POST, MAPS, media, "{}".into()).await?;
        ensure!(answer.status() == 415, "{media}: {}", answer.status());
        talk = ground.door().open().await?;
    }
    Ok(())
}

async fn no_text(ground: &Ground) -> Result<()> {
    let mut body = b"{\"metadata\":{\"name\":\"a".to_vec();
    body.extend([0xff, 0xfe, 0x80]);
    body.extend(b"\"}}");
    let mut asked = ground.head("POST", MAPS).into_bytes();
    asked.extend(format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len()).bytes());
    asked.extend(body);
    let reply = ground.say(&asked).await?;
    ensure!(codes(&reply) == [400], "{reply:.300}");
    let surrogate = "{\"metadata\":{\"name\":\"\\ud800\"}}";
    ground.must(Method::POST, MAPS, surrogate, &[400, 422]).await?;
    Ok(())
}

const PODS: &str = "/api/v1/namespaces/attack/pods";

/// The account that pods run as; without it none is looked at.
async fn make_account(ground: &Ground) -> Result<()> {
    let account = json!({"metadata": {"name": "default"}}).to_string();
    let path = "/api/v1/namespaces/attack/serviceaccounts";
    ground.must(Method::POST, path, &account, &[201, 409]).await?;
    Ok(())
}

async fn containers_by_the_million(ground: &Ground) -> Result<()> {
    make_account(ground).await?;
    for count in [900_000, 100_000] {
        let empty = vec!["{}"; count].join(",");
        let pod =
            format!("{{\"metadata\":{{\"name\":\"a\"}},\"spec\":{{\"containers\":[{empty}]}}}}");
        ground.must(Method::POST, PODS, &pod, &[413, 422]).await?;
    }
    Ok(())
}

/// Lists in which every element must be compared with all others.
async fn long_lists(ground: &Ground) -> Result<()> {
    make_account(ground).await?;
    let named = |count: usize, rest: &Value| -> Value {
        let one = |n: usize| {
            let mut one = rest.clone();
            one["name"] = json!(format!("n{n}"));
            one
        };
        (0..count).map(one).collect()
    };
    let container = json!({"name": "c", "image": "i"});
    let with = |key: &str, value: Value| {
        let mut container = container.clone();
        container[key] = value;
        json!([container])
    };
    let keys: serde_json::Map<String, Value> =
        (0..30_000).map(|n| (format!("key-{n}"), json!("v"))).collect();
    let specs = [
        json!({"containers": named(30_000, &json!({"image": "i"}))}),
        json!({"containers": [container], "volumes": named(40_000, &json!({"emptyDir": {}}))}),
        json!({"containers": with("env", named(50_000, &json!({"value": "v"})))}),
        json!({"containers": with("ports", named(30_000, &json!({"containerPort": 1})))}),
        json!({"containers": [container], "tolerations": vec![json!({"key": "a"}); 60_000]}),
        json!({"containers": [container], "nodeSelector": keys}),
    ];
    // Twice: memory that is given back is used again.
    for spec in specs.iter().chain(&specs) {
        let pod = json!({"metadata": {"name": "long"}, "spec": spec}).to_string();
        ground.must(Method::POST, PODS, &pod, &[201, 409, 413, 422]).await?;
    }
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "uid": "u"});
    for metadata in [
        json!({"name": "m", "ownerReferences": named(15_000, &owner)}),
        json!({"name": "m", "labels": keys}),
        json!({"name": "m", "annotations": keys}),
        json!({"name": "m", "finalizers": keys.keys().map(|key| format!("a/{key}")).collect::<Value>()}),
    ] {
        let map = json!({"metadata": metadata}).to_string();
        ground.must(Method::POST, MAPS, &map, &[201, 409, 413, 422]).await?;
    }
    Ok(())
}

async fn numbers_by_the_million(ground: &Ground) -> Result<()> {
    let numbers = vec!["1"; 1_400_000].join(",");
    let body = format!("{{\"metadata\":{{\"name\":\"a\"}},\"data\":[{numbers}]}}");
    ground.must(Method::POST, MAPS, &body, &[400, 413, 422]).await?;
    Ok(())
}

async fn binary_bombs(ground: &Ground) -> Result<()> {
    const MEDIA: &str = "application/vnd.kubernetes.protobuf";
    let pod = b"\x0a\x09\x0a\x02v1\x12\x03Pod";
    let containers = [0x12_u8, 0].repeat(700_000);
    let length = |length: usize| {
        [length & 0x7f | 0x80, length >> 7 & 0x7f | 0x80, length >> 14]
            .map(|part| u8::try_from(part).unwrap_or_default())
    };
    let spec = [&[0x12], &length(containers.len())[..], &containers].concat();
    let raw = [&[0x12], &length(spec.len())[..], &spec].concat();
    let bombs = [
        [&b"k8s\0"[..], pod, &raw].concat(),
        [&b"k8s\0"[..], &vec![0x0b; 100_000]].concat(),
        b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f".to_vec(),
        b"{}".to_vec(),
        Vec::new(),
    ];
    for bomb in bombs {
        let mut talk = ground.door().open().await?;
        let answer = talk.begin(Method::POST, PODS, MEDIA, bomb.into()).await?;
        ensure!(answer.status() == 400, "{}", answer.status());
    }
    Ok(())
}

async fn patch(ground: &Ground, media: &str, patch: &Value) -> Result<u16> {
    let mut talk = ground.door().open().await?;
    let map = format!("{MAPS}/patched");
    let answer = talk.begin(Method::PATCH, &map, media, patch.to_string().into()).await?;
    Ok(answer.status().as_u16())
}

async fn patches_that_copy(ground: &Ground) -> Result<()> {
    ground.make_map("patched", 100_000).await?;
    let doubling = |n: usize| json!({"op": "copy", "from": "/data", "path": format!("/data/c{n}")});
    let bomb: Value = (0..60).map(doubling).collect();
    let code = patch(ground, "application/json-patch+json", &bomb).await?;
    ensure!(matches!(code, 400 | 413 | 422), "{code}");
    let shuffle: Value = (0..10_000)
        .map(|n| {
            let (from, to) = if n % 2 == 0 { ("/data", "/moved") } else { ("/moved", "/data") };
            json!({"op": "move", "from": from, "path": to})
        })
        .collect();
    patch(ground, "application/json-patch+json", &shuffle).await?;
    Ok(())
}

async fn patches_of_many_operations(ground: &Ground) -> Result<()> {
    ground.make_map("patched", 100_000).await?;
    let test = json!({"op": "test", "path": "/data", "value": {}});
    let many: Value = std::iter::repeat_n(test, 20_000).collect();
    let code = patch(ground, "application/json-patch+json", &many).await?;
    ensure!(code == 413, "{code}");
    Ok(())
}

async fn patches_too_deep(ground: &Ground) -> Result<()> {
    ground.make_map("patched", 100_000).await?;
    for media in ["application/merge-patch+json", "application/strategic-merge-patch+json"] {
        let deep = (0..125).fold(json!("x"), |inner, _| json!({"a": inner}));
        let code = patch(ground, media, &deep).await?;
        ensure!((400..500).contains(&code), "{media}: {code}");
    }
    let code = patch(ground, "application/apply-patch+yaml", &json!({})).await?;
    ensure!((400..500).contains(&code), "apply: {code}");
    Ok(())
}

async fn selectors_of_all_sizes(ground: &Ground) -> Result<()> {
    let values = vec!["abc"; 12_000].join(",");
    let wide = format!("{MAPS}?labelSelector=a%20in%20({values})");
    ground.must(Method::GET, &wide, "", &[200, 400]).await?;
    let many = vec!["a%3Db"; 9_000].join(",");
    ground.must(Method::GET, &format!("{MAPS}?labelSelector={many}"), "", &[200, 400]).await?;
    let fields = vec!["metadata.name%3Db"; 3_000].join(",");
    ground.must(Method::GET, &format!("{MAPS}?fieldSelector={fields}"), "", &[200, 400]).await?;
    let parts = vec!["a=b"; 15_000].join("&");
    ground.must(Method::GET, &format!("{MAPS}?{parts}"), "", &[200, 400]).await?;
    for broken in ["((((", "a%20in", "%ff%fe", "a%3D%3D%3D%3Db", "!!a"] {
        ground.must(Method::GET, &format!("{MAPS}?labelSelector={broken}"), "", &[400]).await?;
    }
    Ok(())
}

async fn pages_of_all_sizes(ground: &Ground) -> Result<()> {
    ground.make_map("first", 10).await?;
    ground.make_map("second", 10).await?;
    for limit in ["0", "1", "500", "9223372036854775807"] {
        ground.must(Method::GET, &format!("{MAPS}?limit={limit}"), "", &[200]).await?;
    }
    for limit in ["-1", "x", "99999999999999999999", "1e3"] {
        ground.must(Method::GET, &format!("{MAPS}?limit={limit}"), "", &[200, 400]).await?;
    }
    for token in ["x", "%ff", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTF9"] {
        let path = format!("{MAPS}?limit=1&continue={token}");
        ground.must(Method::GET, &path, "", &[200, 400, 410]).await?;
    }
    for revision in ["x", "-1", "99999999999999999999999", "9999999999"] {
        let path = format!("{MAPS}?resourceVersion={revision}");
        ground.must(Method::GET, &path, "", &[400, 504]).await?;
    }
    Ok(())
}
