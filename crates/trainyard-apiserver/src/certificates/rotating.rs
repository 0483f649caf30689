//! A certificate that is made anew in time, while it is used: each handshake is given the present one.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::KeyError;
use super::life::Life;

/// A certificate with its key, and how long it holds.
pub(super) type Made = (Arc<CertifiedKey>, Life);

/// One certificate after another.
pub(super) struct Rotating {
    make: Box<dyn Fn() -> Result<Made, KeyError> + Send + Sync>,
    /// The time, in seconds since 1970.
    now: fn() -> i64,
    present: Mutex<Made>,
}

impl Rotating {
    pub(super) fn new(
        make: impl Fn() -> Result<Made, KeyError> + Send + Sync + 'static,
        now: fn() -> i64,
    ) -> Result<Self, KeyError> {
        let present = Mutex::new(make()?);
        Ok(Self { make: Box::new(make), now, present })
    }

    fn present(&self) -> Arc<CertifiedKey> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if present.1.is_due((self.now)()) {
            match (self.make)() {
                Ok(made) => {
                    tracing::info!("a certificate is made anew before it ends");
                    *present = made;
                }
                // The one before still holds for a third of its life.
                Err(error) => tracing::warn!(%error, "a certificate cannot be made anew"),
            }
        }
        Arc::clone(&present.0)
    }
}

impl fmt::Debug for Rotating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rotating").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Rotating {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.present())
    }
}

impl ResolvesClientCert for Rotating {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.present())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::super::Authority;
    use super::*;

    static NOW: AtomicI64 = AtomicI64::new(0);

    #[test]
    fn the_present_one_is_kept_until_a_third_is_left() {
        let authority = Arc::new(Authority::ephemeral().unwrap());
        let make = move || {
            let credentials = authority.client("a", &[])?;
            let now = NOW.load(Ordering::Relaxed);
            Ok((super::super::certified(&credentials)?, Life { begin: now, end: now + 300 }))
        };
        let rotating = Rotating::new(make, || NOW.load(Ordering::Relaxed)).unwrap();
        let first = rotating.present();
        NOW.store(199, Ordering::Relaxed);
        assert!(Arc::ptr_eq(&first, &rotating.present()));
        NOW.store(201, Ordering::Relaxed);
        let second = rotating.present();
        assert_ne!(first.cert, second.cert);
        NOW.store(400, Ordering::Relaxed);
        assert!(Arc::ptr_eq(&second, &rotating.present()));
    }
}
