//! Who asks: by certificate, by token, or nobody.
//!
//! Owns the ways to prove an identity. What an identity may do is decided elsewhere.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};

use crate::api::Api;
use crate::certificates::{self, UserTokens};
use crate::failure::Failure;
use crate::kind::Caller;

/// The group that may do everything.
pub(crate) const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";

/// Fixed tokens, by their digest, and those of the user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doors {
    tokens: Vec<([u8; 32], Caller)>,
    /// The user, and who checks their tokens.
    user: Option<(UserTokens, Caller)>,
}

impl Doors {
    /// Lets whoever has this token in.
    pub(crate) fn add(&mut self, token: &str, caller: Caller) {
        self.tokens.push((Sha256::digest(token.as_bytes()).into(), caller));
    }

    /// Lets the user in with tokens that are made anew from time to time.
    pub(crate) fn trust(&mut self, tokens: UserTokens, caller: Caller) {
        self.user = Some((tokens, caller));
    }

    /// Who asks; `Ok(None)` when nobody says.
    pub(crate) fn identify(
        &self,
        api: &Api,
        certificate: Option<&Caller>,
        headers: &HeaderMap,
    ) -> Result<Option<Caller>, Failure> {
        if let Some(caller) = certificate {
            return Ok(Some(caller.clone()));
        }
        let Some(header) = headers.get(AUTHORIZATION) else { return Ok(None) };
        let token = header.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        let token = token.map(str::trim).ok_or_else(unauthorized)?;
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // Digests are compared, so the time this takes tells nothing of the token.
        if let Some((_, caller)) = self.tokens.iter().find(|(known, _)| *known == digest) {
            return Ok(Some(caller.clone()));
        }
        if let Some((tokens, caller)) = &self.user
            && tokens.check(token, certificates::now())
        {
            return Ok(Some(caller.clone()));
        }
        service_account(api, token).map(Some)
    }
}

/// Nobody we know.
pub(crate) fn unauthorized() -> Failure {
    Failure::new(401, "Unauthorized", "Unauthorized")
}

/// An identity with the groups that come with it.
pub(crate) fn caller(name: &str, groups: &[&str]) -> Caller {
    let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    groups.push(AUTHENTICATED.to_owned());
    Caller { name: name.to_owned(), uid: String::new(), groups, extra: Vec::new() }
}

/// The account of a token that was signed here and still holds.
pub(crate) fn service_account(api: &Api, token: &str) -> Result<Caller, Failure> {
    let claim = api.tokens.check(token, api.clock.now().as_second()).map_err(|error| {
        tracing::debug!(%error, "a token is refused");
        unauthorized()
    })?;
    let lives = |storage: &str, namespace: &str, name: &str, uid: &str| {
        api.store.get(storage, namespace, name).is_some_and(|found| *found.meta.uid == *uid)
    };
    if !lives("serviceaccounts", &claim.namespace, &claim.account, &claim.account_uid) {
        return Err(unauthorized());
    }
    let credential = "authentication.kubernetes.io/credential-id".to_owned();
    let mut extra = vec![(credential, vec![format!("JTI={}", claim.id)])];
    if let Some((kind, name, uid)) = &claim.bound {
        let (storage, namespace) = match kind.as_str() {
            "Pod" => ("pods", claim.namespace.as_str()),
            "Secret" => ("secrets", claim.namespace.as_str()),
            _ => ("nodes", ""),
        };
        if !lives(storage, namespace, name, uid) {
            return Err(unauthorized());
        }
        if kind == "Pod" {
            let key = |end: &str| format!("authentication.kubernetes.io/pod-{end}");
            extra.push((key("name"), vec![name.clone()]));
            extra.push((key("uid"), vec![uid.clone()]));
        }
    }
    let name = format!("system:serviceaccount:{}:{}", claim.namespace, claim.account);
    let own = format!("system:serviceaccounts:{}", claim.namespace);
    let mut caller = caller(&name, &["system:serviceaccounts", &own]);
    caller.uid = claim.account_uid;
    caller.extra = extra;
    Ok(caller)
}
