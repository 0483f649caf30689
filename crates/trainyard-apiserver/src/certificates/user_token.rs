//! The user's token, for clients that can show no certificate: until when it holds, signed with the yard's
//! key. It ends with the certificate beside which it stands in a kubeconfig.
//!
//! Pure, but for the key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

/// Makes and checks tokens of one yard.
#[derive(Debug, Clone)]
pub(crate) struct UserTokens {
    key: hmac::Key,
}

impl UserTokens {
    pub(super) fn new(key: &[u8]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key) }
    }

    /// A token that holds until then, in seconds since 1970.
    pub(super) fn issue(&self, end: i64) -> String {
        format!("{end}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, said(end).as_bytes())))
    }

    /// Whether a token was made here and still holds.
    pub(crate) fn check(&self, token: &str, now: i64) -> bool {
        let Some((end, signature)) = token.split_once('.') else { return false };
        let (Ok(end), Ok(signature)) = (end.parse(), URL_SAFE_NO_PAD.decode(signature)) else {
            return false;
        };
        // Compared in constant time, and before the time is looked at.
        hmac::verify(&self.key, said(end).as_bytes(), &signature).is_ok() && now < end
    }
}

fn said(end: i64) -> String {
    format!("the user's token until {end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_until_its_end_and_not_longer() {
        let tokens = UserTokens::new(b"key");
        let token = tokens.issue(1_000);
        assert!(tokens.check(&token, 999));
        assert!(!tokens.check(&token, 1_000));
    }

    #[test]
    fn nobody_else_makes_or_lengthens_one() {
        let tokens = UserTokens::new(b"key");
        let token = tokens.issue(1_000);
        let (_, signature) = token.split_once('.').unwrap();
        let other = UserTokens::new(b"other").issue(1_000);
        // What tokens were before they had an end.
        let endless = hmac::sign(&tokens.key, b"the user's token");
        let endless = URL_SAFE_NO_PAD.encode(endless);
        for wrong in [
            format!("2000.{signature}").as_str(),
            &format!("{token}x"),
            &token[..token.len() - 1],
            &other,
            &endless,
            &format!("1000.{endless}"),
            "",
            ".",
            "1000.",
            "a.b.c",
        ] {
            assert!(!tokens.check(wrong, 0), "{wrong}");
        }
    }
}
