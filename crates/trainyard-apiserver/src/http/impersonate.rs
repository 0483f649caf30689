//! Asking in the name of another, as `kubectl --as` does.
//!
//! Owns the headers and who the caller then is. Whether one may is decided by roles.

use http::HeaderMap;

use super::rights::{self, Act};
use crate::failure::Failure;
use crate::kind::{Caller, World};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const ACCOUNT: &str = "system:serviceaccount:";

/// No request names more groups or extras.
const MOST: usize = 256;

/// The one in whose name is asked; the caller itself when nobody is named.
pub(super) fn in_whose_name(
    world: &dyn World,
    caller: Caller,
    headers: &HeaderMap,
) -> Result<Caller, Failure> {
    let texts = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.filter(|value| !value.is_empty()).take(MOST).map(str::to_owned).collect()
    };
    let groups = texts(GROUP);
    let extra: Vec<(String, Vec<String>)> = headers
        .keys()
        .filter_map(|name| {
            Some((name.as_str().strip_prefix(EXTRA)?.to_owned(), texts(name.as_str())))
        })
        .take(MOST)
        .collect();
    let uid = texts(UID);
    let Some(name) = texts(USER).into_iter().next() else {
        if groups.is_empty() && extra.is_empty() && uid.is_empty() {
            return Ok(caller);
        }
        return Err(Failure::internal("groups, extra or uid impersonated without a user"));
    };
    let account = name.strip_prefix(ACCOUNT).and_then(|rest| rest.split_once(':'));
    match account {
        Some((namespace, account)) => {
            may(world, &caller, "", "serviceaccounts", namespace, account)?;
        }
        None => may(world, &caller, "", "users", "", &name)?,
    }
    for group in &groups {
        may(world, &caller, "", "groups", "", group)?;
    }
    for uid in &uid {
        may(world, &caller, "authentication.k8s.io", "uids", "", uid)?;
    }
    for (key, values) in &extra {
        for value in values {
            may(world, &caller, "authentication.k8s.io", &format!("userextras/{key}"), "", value)?;
        }
    }
    let groups = completed(&name, groups, account.map(|(namespace, _)| namespace));
    Ok(Caller { name, uid: uid.concat(), groups, extra })
}

fn may(
    world: &dyn World,
    caller: &Caller,
    group: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<(), Failure> {
    let resource = resource.to_owned();
    let act = Act { verb: "impersonate", group, resource, namespace, name, ..Act::default() };
    rights::check(world, caller, &act)
}

/// The groups that everybody of this sort is in.
fn completed(name: &str, mut groups: Vec<String>, namespace: Option<&str>) -> Vec<String> {
    if let (Some(namespace), true) = (namespace, groups.is_empty()) {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    let all = match name {
        "system:anonymous" => "system:unauthenticated",
        _ => "system:authenticated",
    };
    if !groups.iter().any(|group| group == all) {
        groups.push(all.to_owned());
    }
    groups
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::http::auth;

    /// Nobody has any role here.
    struct Empty;

    impl World for Empty {
        fn get(&self, _: &str, _: &str, _: &str) -> Option<Value> {
            None
        }

        fn list(&self, _: &str, _: Option<&str>) -> Vec<Value> {
            Vec::new()
        }

        fn now(&self) -> String {
            String::new()
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_master_is_whoever_it_likes() {
        let master = auth::caller("admin", &[auth::MASTERS]);
        let named = headers(&[(USER, "jane"), (GROUP, "dev"), ("impersonate-extra-a", "b")]);
        let jane = in_whose_name(&Empty, master.clone(), &named).unwrap();
        assert_eq!(
            (jane.name.as_str(), jane.groups.as_slice()),
            ("jane", &["dev".to_owned(), "system:authenticated".to_owned()][..])
        );
        assert_eq!(jane.extra, [("a".to_owned(), vec!["b".to_owned()])]);
        let named = headers(&[(USER, "system:serviceaccount:n:a")]);
        let account = in_whose_name(&Empty, master.clone(), &named).unwrap();
        assert!(account.groups.contains(&"system:serviceaccounts:n".to_owned()));
        let nobody = in_whose_name(&Empty, master.clone(), &HeaderMap::new()).unwrap();
        assert_eq!(nobody.name, "admin");
        let only_groups = headers(&[(GROUP, auth::MASTERS)]);
        assert_eq!(in_whose_name(&Empty, master, &only_groups).unwrap_err().code, 500);
    }

    #[test]
    fn others_need_a_role_for_it() {
        let jane = auth::caller("jane", &[]);
        for named in [headers(&[(USER, "admin")]), headers(&[(USER, "system:serviceaccount:n:a")])]
        {
            let refused = in_whose_name(&Empty, jane.clone(), &named).unwrap_err();
            assert_eq!(refused.code, 403, "{refused}");
        }
        let refused = in_whose_name(&Empty, jane, &headers(&[(USER, "admin")])).unwrap_err();
        assert_eq!(
            refused.message,
            "users \"admin\" is forbidden: User \"jane\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope"
        );
    }
}
