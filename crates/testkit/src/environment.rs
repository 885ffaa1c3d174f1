//! What the environment asks of tests: how much they do, and the seed of what they choose.

use std::fmt::Debug;
use std::str::FromStr;

use crate::time::now;

/// The value of a variable such as `RINGBACK_TEST_PAUSES`, if it is set. One that cannot be read panics.
pub fn variable<T: FromStr<Err: Debug>>(name: &str) -> Option<T> {
    let text = std::env::var_os(name)?;
    let text = text.to_str().unwrap_or_else(|| panic!("{name} is not a string"));
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error:?}")))
}

/// The seed that a variable names, else one that is new in each run of the tests. It is the same for each attempt of a
/// test in one run of cargo-nextest.
pub fn seed(name: &str) -> u64 {
    variable(name).unwrap_or_else(|| {
        // A random UUID.
        let run = variable::<String>("NEXTEST_RUN_ID");
        let of_run = run.and_then(|run| u64::from_str_radix(run.get(..8)?, 16).ok());
        of_run.unwrap_or_else(|| u64::try_from(now().as_microsecond()).expect("it is after 1970") % (1 << 32))
    })
}
