//! Environment variables that set how much tests do, and the seed of their random choices.

use std::fmt::Debug;
use std::str::FromStr;

use crate::time::now;

/// The parsed value of a variable such as `RINGBACK_TEST_PAUSES`; `None` if it is unset. Panics if parsing fails.
pub fn variable<T: FromStr<Err: Debug>>(name: &str) -> Option<T> {
    let text = std::env::var_os(name)?;
    let text = text.to_str().unwrap_or_else(|| panic!("{name} is not a string"));
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error:?}")))
}

/// The seed in a variable; if it is unset, a seed that differs from run to run. All attempts of a test in one run of
/// cargo-nextest get the same seed.
pub fn seed(name: &str) -> u64 {
    variable(name).unwrap_or_else(|| {
        // A random UUID.
        let run = variable::<String>("NEXTEST_RUN_ID");
        let of_run = run.and_then(|run| u64::from_str_radix(run.get(..8)?, 16).ok());
        of_run.unwrap_or_else(|| u64::try_from(now().as_microsecond()).expect("it is after 1970") % (1 << 32))
    })
}
