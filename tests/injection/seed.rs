//! The seed of a run.

/// `RINGBACK_TEST_SEED`, else a fresh one.
pub(crate) fn seed() -> u64 {
    let wanted = std::env::var_os("RINGBACK_TEST_SEED").and_then(|seed| seed.to_str()?.parse().ok());
    wanted
        .unwrap_or_else(|| u64::try_from(ringback_testkit::now().as_microsecond()).expect("it is after 1970"))
}
