//! Tokens of service accounts: signed, bound to what they are for, checked without a list of them.
//!
//! Owns their form (JWT, ES256) and the key. Must not know whether an account still exists.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde_json::{Value, json};

/// Who made a token, and for whom it is unless it says otherwise.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Longer ones are not looked at.
const LONGEST: usize = 16 * 1024;

/// What is wrong with a key or a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the signing key cannot be used: {0}")]
    Key(String),
    #[error("the token is malformed")]
    Malformed,
    #[error("the token was not signed here")]
    Signature,
    #[error("the token has expired")]
    Expired,
    #[error("the token is for another audience")]
    Audience,
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its own identity, which tells it from others that say the same.
    pub(crate) id: String,
    pub(crate) namespace: String,
    pub(crate) account: String,
    pub(crate) account_uid: String,
    pub(crate) audiences: Vec<String>,
    /// Kind, name and identity of the object with which it ends.
    pub(crate) bound: Option<(String, String, String)>,
    /// Seconds since 1970.
    pub(crate) issued: i64,
    pub(crate) expires: i64,
}

/// Signs and checks tokens.
pub(crate) struct Tokens {
    key: EcdsaKeyPair,
}

impl Tokens {
    /// A new key, in PKCS#8.
    pub(crate) fn new_key() -> Result<Vec<u8>, TokenError> {
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map(|key| key.as_ref().to_vec())
            .map_err(|error| TokenError::Key(error.to_string()))
    }

    /// With a key made by [`Self::new_key`].
    pub(crate) fn with_key(pkcs8: &[u8]) -> Result<Self, TokenError> {
        let random = SystemRandom::new();
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random)
            .map(|key| Self { key })
            .map_err(|error| TokenError::Key(error.to_string()))
    }

    /// A token.
    pub(crate) fn sign(&self, claim: &Claim) -> Result<String, TokenError> {
        let header = json!({"alg": "ES256", "typ": "JWT"});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claim.value()));
        let signature = self
            .key
            .sign(&SystemRandom::new(), message.as_bytes())
            .map_err(|error| TokenError::Key(error.to_string()))?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// What a token says, if it was signed here, is for us, and holds at this time.
    pub(crate) fn check(&self, token: &str, now: i64) -> Result<Claim, TokenError> {
        if token.len() > LONGEST {
            return Err(TokenError::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (_, body) = message.split_once('.').ok_or(TokenError::Malformed)?;
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed);
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key());
        public
            .verify(message.as_bytes(), &decode(signature)?)
            .map_err(|_| TokenError::Signature)?;
        let value = serde_json::from_slice(&decode(body)?).map_err(|_| TokenError::Malformed)?;
        let claim = Claim::read(&value).ok_or(TokenError::Malformed)?;
        if now >= claim.expires {
            return Err(TokenError::Expired);
        }
        if !claim.audiences.iter().any(|audience| audience == ISSUER) {
            return Err(TokenError::Audience);
        }
        Ok(claim)
    }
}

impl Claim {
    fn value(&self) -> Value {
        let mut inner = json!({
            "namespace": self.namespace,
            "serviceaccount": {"name": self.account, "uid": self.account_uid},
        });
        if let Some((kind, name, uid)) = &self.bound {
            inner[kind.to_ascii_lowercase()] = json!({"name": name, "uid": uid});
        }
        json!({
            "iss": ISSUER, "aud": self.audiences, "iat": self.issued, "nbf": self.issued,
            "exp": self.expires, "jti": self.id,
            "sub": format!("system:serviceaccount:{}:{}", self.namespace, self.account),
            "kubernetes.io": inner,
        })
    }

    fn read(value: &Value) -> Option<Self> {
        let inner = &value["kubernetes.io"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let bound = [("pod", "Pod"), ("secret", "Secret"), ("node", "Node")];
        let bound = bound.into_iter().find_map(|(key, kind)| {
            let found = &inner[key];
            Some((kind.to_owned(), text(&found["name"])?, text(&found["uid"])?))
        });
        let audiences = value["aud"].as_array()?;
        Some(Self {
            id: text(&value["jti"])?,
            namespace: text(&inner["namespace"])?,
            account: text(&inner["serviceaccount"]["name"])?,
            account_uid: text(&inner["serviceaccount"]["uid"])?,
            audiences: audiences.iter().filter_map(text).collect(),
            bound,
            issued: value["iat"].as_i64()?,
            expires: value["exp"].as_i64()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim {
        Claim {
            id: "j".into(),
            namespace: "default".into(),
            account: "trainer".into(),
            account_uid: "u".into(),
            audiences: vec![ISSUER.into()],
            bound: Some(("Pod".into(), "p".into(), "v".into())),
            issued: 1000,
            expires: 2000,
        }
    }

    #[test]
    fn what_was_signed_is_read_again() {
        let tokens = Tokens::with_key(&Tokens::new_key().unwrap()).unwrap();
        let token = tokens.sign(&claim()).unwrap();
        assert_eq!(tokens.check(&token, 1500), Ok(claim()));
        assert_eq!(tokens.check(&token, 2000), Err(TokenError::Expired));
        let stranger = Tokens::with_key(&Tokens::new_key().unwrap()).unwrap();
        assert_eq!(stranger.check(&token, 1500), Err(TokenError::Signature));
        let mut other = claim();
        other.audiences = vec!["vault".into()];
        let token = tokens.sign(&other).unwrap();
        assert_eq!(tokens.check(&token, 1500), Err(TokenError::Audience));
    }

    #[test]
    fn rubbish_is_no_token() {
        let tokens = Tokens::with_key(&Tokens::new_key().unwrap()).unwrap();
        let long = "x".repeat(LONGEST + 1);
        for text in ["", ".", "..", "a.b.c", "ü.ü.ü", &long] {
            assert!(tokens.check(text, 0).is_err());
        }
    }
}
