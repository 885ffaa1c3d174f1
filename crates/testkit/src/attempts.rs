//! The attempts of a test in one run of cargo-nextest, which runs a test again that has failed: what only a busy machine
//! has upset passes then. What one attempt has found out about the product stays: it fails all that come after it.

use std::fs;
use std::path::PathBuf;

use crate::environment::variable;

/// Remembers for further attempts what was found.
pub fn remember(test: &str, finding: &str) {
    if let Some(file) = file(test) {
        fs::write(file, finding).expect("the directory of temporary files can be written");
    }
}

/// Fails if an attempt before this one has found anything.
pub fn fail_if_found(test: &str) {
    if let Some(finding) = file(test).and_then(|file| fs::read_to_string(file).ok()) {
        panic!("{test}: an earlier attempt has found this: {finding}");
    }
}

/// The file for the findings of a test. There are no attempts without cargo-nextest.
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
