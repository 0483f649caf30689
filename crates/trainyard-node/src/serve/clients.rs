//! Which of the clients that an authority vouches for are answered: a cluster's authority signs people
//! and nodes too, who must go through the API server and its rules.

use rustls::pki_types::CertificateDer;

/// Whose questions are answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clients {
    /// Common names of their certificates; without any, everybody's the authority vouches for.
    names: Vec<String>,
}

impl Clients {
    /// Those with one of these names; everybody where there is none.
    pub(crate) fn named(names: &[String]) -> Self {
        Self { names: names.to_vec() }
    }

    /// Why this client gets no answer.
    pub(super) fn refusal(&self, shown: Option<&[CertificateDer<'_>]>) -> Option<String> {
        if self.names.is_empty() {
            return None;
        }
        let name = shown.and_then(<[_]>::first).and_then(common_name);
        let known = name.is_some_and(|name| self.names.iter().any(|known| known == name));
        (!known).then(|| {
            let who = name.map_or_else(
                || "whose certificate has no common name".to_owned(),
                |name| format!("named {name:?}"),
            );
            format!(
                "this node does not answer a client {who}; if it is the API server, start the node \
                 with --client-name and that name\n"
            )
        })
    }
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT: u8 = 0x06;
const VERSION: u8 = 0xa0;
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The last common name in a certificate's subject.
fn common_name<'a>(certificate: &'a CertificateDer<'_>) -> Option<&'a str> {
    let (whole, _) = expect(SEQUENCE, certificate)?;
    let (mut fields, _) = expect(SEQUENCE, whole)?;
    if let Some((_, rest)) = expect(VERSION, fields) {
        fields = rest;
    }
    // Serial number, signature, issuer and validity come before the subject.
    for _ in 0..4 {
        (_, _, fields) = element(fields)?;
    }
    let (mut subject, _) = expect(SEQUENCE, fields)?;
    let mut name = None;
    while !subject.is_empty() {
        let (mut group, rest) = expect(SET, subject)?;
        subject = rest;
        while !group.is_empty() {
            let (pair, rest) = expect(SEQUENCE, group)?;
            group = rest;
            let (kind, value) = expect(OBJECT, pair)?;
            if kind == COMMON_NAME {
                name = Some(std::str::from_utf8(element(value)?.1).ok()?);
            }
        }
    }
    name
}

fn expect(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(bytes)?;
    (found == tag).then_some((content, rest))
}

/// Tag, content and what follows of the first DER element.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, bytes) = bytes.split_first()?;
    let (&first, bytes) = bytes.split_first()?;
    let (length, bytes) = if first < 0x80 {
        (usize::from(first), bytes)
    } else {
        let (digits, bytes) = bytes.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), bytes)
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate(names: &[(DnType, &str)]) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["other".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn the_common_name_is_found() {
        let long = "n".repeat(300);
        for name in ["kube-apiserver-kubelet-client", "ü", &long] {
            let found = certificate(&[
                (DnType::OrganizationName, "system:masters"),
                (DnType::CommonName, name),
            ]);
            assert_eq!(common_name(&found), Some(name));
        }
        assert_eq!(common_name(&certificate(&[(DnType::OrganizationName, "x")])), None);
    }

    #[test]
    fn strangers_are_told_their_name() {
        let shown = [certificate(&[(DnType::CommonName, "jane")])];
        let nameless = [certificate(&[(DnType::OrganizationName, "x")])];
        assert_eq!(Clients::default().refusal(Some(&nameless)), None);
        let clients = Clients::named(&["apiserver".to_owned(), "jane".to_owned()]);
        assert_eq!(clients.refusal(Some(&shown)), None);
        let clients = Clients::named(&["apiserver".to_owned()]);
        let words = clients.refusal(Some(&shown)).unwrap();
        assert!(words.contains("named \"jane\"") && words.contains("--client-name"), "{words}");
        for shown in [Some(&nameless[..]), Some(&[]), None] {
            assert!(clients.refusal(shown).unwrap().contains("no common name"));
        }
    }

    proptest! {
        #[test]
        fn rubbish_has_no_name_and_does_no_harm(
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            keep in 0usize..600,
        ) {
            let mut bytes = certificate(&[(DnType::CommonName, "me")]).to_vec();
            for (at, byte) in flips {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(keep);
            let _whatever = common_name(&CertificateDer::from(bytes));
        }
    }
}
