//! What a test has found, kept for its later attempts in one run of cargo-nextest. nextest runs a failed test again, so
//! a test that only a busy machine upset can pass. A test that found a fault of the product fails in all later attempts.

use std::fs;
use std::path::PathBuf;

use crate::environment::variable;

/// Stores a finding of `test` in a temporary file, which its later attempts read. Does nothing without cargo-nextest.
pub fn remember(test: &str, finding: &str) {
    if let Some(file) = file(test) {
        fs::write(file, finding).expect("the directory of temporary files can be written");
    }
}

/// Panics if an earlier attempt of `test` in this run of cargo-nextest has stored a finding.
pub fn fail_if_found(test: &str) {
    if let Some(finding) = file(test).and_then(|file| fs::read_to_string(file).ok()) {
        panic!("{test}: an earlier attempt has found this: {finding}");
    }
}

/// The file for the findings of a test in this run of cargo-nextest; `None` without cargo-nextest.
fn file(test: &str) -> Option<PathBuf> {
    let run: String = variable("NEXTEST_RUN_ID")?;
    Some(std::env::temp_dir().join(format!("ringback-{run}-{}", test.replace(['/', ' '], "-"))))
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::environment::seed;

    #[test]
    fn a_further_attempt_has_the_same_seed_and_fails_for_what_was_found() {
        let name = format!("attempts {}", std::process::id());
        fail_if_found(&name);
        remember(&name, "a violation");
        let again = catch_unwind(|| fail_if_found(&name));
        let Some(file) = file(&name) else { return };
        fs::remove_file(file).expect("it was written");
        let message = *again.expect_err("it fails").downcast::<String>().expect("a message");
        assert!(message.ends_with("an earlier attempt has found this: a violation"), "{message}");
        assert_eq!(seed("RINGBACK_TEST_NO_SUCH_SEED"), seed("RINGBACK_TEST_NO_SUCH_SEED"));
    }
}
