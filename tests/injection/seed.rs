//! The seed of a run.

/// `RINGBACK_TEST_SEED`, else a fresh one.
pub(crate) fn seed() -> u64 {
    ringback_testkit::seed("RINGBACK_TEST_SEED")
}
