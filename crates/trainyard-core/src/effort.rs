//! How much a property test does: usually little, much where `TRAINYARD_LONG` says that there is time.

/// The first number usually, the second where there is much time.
#[allow(clippy::disallowed_methods, reason = "only tests ask, and no plan depends on it")]
pub(crate) fn of_time([usual, long]: [u32; 2]) -> u32 {
    if std::env::var_os("TRAINYARD_LONG").is_some() { long } else { usual }
}
