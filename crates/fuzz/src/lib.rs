//! Random input for fuzz tests of parsers: random bytes, and mutations of samples. The crate that owns a parser has
//! the test; this crate makes the input, and prints the input and seed that fail.
//!
//! `RINGBACK_TEST_FUZZ_SECONDS` is how long each test runs. `RINGBACK_TEST_FUZZ_SEED` is the seed of the first input.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, RngExt as _, SeedableRng as _, TryRng as _};

/// How long a test runs, unless `RINGBACK_TEST_FUZZ_SECONDS` says another.
const SECONDS: u64 = 1;
/// How long one input may take, on a machine with much else to do.
const SLOW: Duration = Duration::from_secs(5);
/// The longest input that is like no sample, in bytes.
const LONGEST: usize = 300;
/// The most mutations of a sample.
const MUTATIONS: u32 = 6;

/// Calls `check` with each sample, then for `RINGBACK_TEST_FUZZ_SECONDS` (default `SECONDS`) with random inputs, whose
/// first seed is `RINGBACK_TEST_FUZZ_SEED`, else differs from run to run.
///
/// # Panics
/// If `check` panics or takes 5 seconds or more. The input and its seed are printed first.
pub fn run<S: AsRef<[u8]>>(samples: &[S], mut check: impl FnMut(&[u8])) {
    let samples: Vec<&[u8]> = samples.iter().map(AsRef::as_ref).collect();
    let first = variable("RINGBACK_TEST_FUZZ_SEED").unwrap_or_else(fresh_seed);
    let until = now() + Duration::from_secs(variable("RINGBACK_TEST_FUZZ_SECONDS").unwrap_or(SECONDS));
    samples.iter().for_each(|sample| checked(sample, first, &mut check));
    let mut seed = first;
    while now() < until {
        checked(&input(&samples, &mut StdRng::seed_from_u64(seed)), seed, &mut check);
        seed = seed.wrapping_add(1);
    }
    show(&format!("{} inputs, seeds {first} to {seed}", seed.wrapping_sub(first)));
}

/// Does the same as [`run`] with texts. Bytes that are not UTF-8 become replacement characters.
pub fn run_texts(samples: &[&str], mut check: impl FnMut(&str)) {
    run(samples, |bytes| check(&String::from_utf8_lossy(bytes)));
}

fn checked(input: &[u8], seed: u64, check: &mut impl FnMut(&[u8])) {
    let begun = now();
    let result = catch_unwind(AssertUnwindSafe(|| {
        check(input);
        assert!(begun.elapsed() < SLOW, "it took {:?}", begun.elapsed());
    }));
    if let Err(panic) = result {
        show(&format!("RINGBACK_TEST_FUZZ_SEED={seed}: b\"{}\"", input.escape_ascii()));
        resume_unwind(panic);
    }
}

/// A sample with one to six mutations. One input in eight, or every input without samples, is random bytes.
fn input(samples: &[&[u8]], rng: &mut StdRng) -> Vec<u8> {
    if samples.is_empty() || rng.random_range(0..8) == 0 {
        let mut bytes = vec![0; rng.random_range(0..LONGEST)];
        rng.fill_bytes(&mut bytes);
        return bytes;
    }
    let mut bytes = one_of(samples, rng).to_vec();
    for _ in 0..rng.random_range(1..=MUTATIONS) {
        mutate(&mut bytes, samples, rng);
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, samples: &[&[u8]], rng: &mut StdRng) {
    let at = rng.random_range(0..=bytes.len());
    let end = rng.random_range(at..=bytes.len());
    match rng.random_range(0..8) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => bytes.extend_from_within(at..end),
        3 => {
            let other = one_of(samples, rng);
            let from = rng.random_range(0..=other.len());
            bytes.splice(at..end, other[from..].iter().copied());
        }
        4 => bytes.insert(at, *one_of(b"\0\x01\x7f\x80\xff \t\r\n\"'{}[]:,;.-+%/\\@#?_=09azAZ", rng)),
        5 => bytes[at..end].fill(*one_of(&[0, 0xff, b'9'], rng)),
        _ if at == bytes.len() => bytes.push(rng.random()),
        6 => bytes[at] = rng.random(),
        _ => bytes[at] ^= 1 << rng.random_range(0..8),
    }
}

fn one_of<'a, T>(all: &'a [T], rng: &mut impl Rng) -> &'a T {
    &all[rng.random_range(0..all.len())]
}

fn fresh_seed() -> u64 {
    SysRng.try_next_u32().expect("the system has random bits").into()
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var_os(name)?;
    let number = text.to_str().and_then(|text| text.parse().ok());
    Some(number.unwrap_or_else(|| panic!("{name} is not a number: {}", text.display())))
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime whose time could be paused")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::print_stderr, reason = "what a test shows if it fails")]
fn show(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_input_again_and_inputs_differ() {
        let samples: [&[u8]; 2] = [b"first", b"second"];
        let of = |seed| input(&samples, &mut StdRng::seed_from_u64(seed));
        let all: std::collections::BTreeSet<_> = (0..1000).map(of).collect();
        assert!(all.len() > 700, "{}", all.len());
        assert!((0..1000).all(|seed| of(seed) == of(seed)));
    }

    #[test]
    fn a_check_that_fails_ends_the_run() {
        let fails = catch_unwind(|| run(&["ab"], |bytes| assert!(bytes.len() > 1, "{bytes:?}")));
        assert!(fails.is_err());
    }
}
