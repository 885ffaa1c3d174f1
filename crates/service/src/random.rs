//! Random number generators, seeded by the operating system, or in simulations by a seed for the thread.

use std::cell::RefCell;

use rand::SeedableRng as _;
use rand::rngs::{StdRng, SysRng};

thread_local! {
    /// What seeds the generators of this thread; `None` for the operating system.
    static ROOT: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// Creates a generator seeded by the operating system, or by [`seed_thread`] if this thread has called it.
///
/// # Panics
/// If the operating system cannot provide random numbers.
#[must_use]
pub fn generator() -> StdRng {
    ROOT.with_borrow_mut(|root| match root {
        Some(root) => StdRng::from_rng(root),
        None => StdRng::try_from_rng(&mut SysRng).expect("the operating system gives random numbers"),
    })
}

/// Seeds all generators that this thread creates from now on, so that a simulation on one thread can be
/// repeated.
pub fn seed_thread(seed: u64) {
    ROOT.set(Some(StdRng::seed_from_u64(seed)));
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::*;

    fn numbers() -> [u64; 2] {
        [(); 2].map(|()| generator().next_u64())
    }

    #[test]
    fn the_generators_of_a_seeded_thread_differ_and_can_be_repeated() {
        let unseeded = numbers();
        seed_thread(7);
        let first = numbers();
        assert_ne!(first[0], first[1]);
        assert_ne!(first, unseeded);
        seed_thread(7);
        assert_eq!(numbers(), first);
        let elsewhere = std::thread::spawn(numbers).join().unwrap();
        assert_ne!(elsewhere, first, "other threads are not seeded");
    }
}
