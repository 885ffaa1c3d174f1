//! Random number generators, seeded by the operating system. Each owner gets its own as an argument.

use rand::SeedableRng as _;
use rand::rngs::{StdRng, SysRng};

/// Creates a generator seeded by the operating system.
///
/// # Panics
/// If the operating system cannot provide random numbers.
#[must_use]
pub fn generator() -> StdRng {
    StdRng::try_from_rng(&mut SysRng).expect("the operating system gives random numbers")
}
