//! Randomness: one generator per owner, seeded by the operating system and handed in.

use rand::SeedableRng as _;
use rand::rngs::{StdRng, SysRng};

/// A generator seeded by the operating system.
///
/// # Panics
/// When the operating system has no randomness to give; nothing safe can be done then.
#[must_use]
pub fn generator() -> StdRng {
    StdRng::try_from_rng(&mut SysRng).expect("the operating system gives random numbers")
}
