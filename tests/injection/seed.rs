//! The seed of the injected faults.

/// The seed in `RINGBACK_TEST_SEED`, else one that is new in each run.
pub(crate) fn seed() -> u64 {
    ringback_testkit::seed("RINGBACK_TEST_SEED")
}
