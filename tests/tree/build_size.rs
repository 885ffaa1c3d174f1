//! Limits what a first `make up` builds: the list of crates, and the size of the binary. Every crate lengthens the first
//! build for everyone who tries Ringback.

use std::collections::BTreeSet;
use std::process::Command;

use crate::files::{read, root};

/// The crates that `make up` builds, a line each; those of two versions twice.
const LIST: &str = "tests/tree/build_size/crates.txt";
/// The most bytes of the binary.
const MAX_BINARY: u64 = 40_000_000;

/// The crates that the package `ringback` is built from, with macros and build scripts, once for each version.
fn crates_of_up() -> Vec<String> {
    let tree = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["tree", "--locked", "--offline", "--package", "ringback"])
        .args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}"])
        .output()
        .expect("cargo starts");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).expect("names of crates are UTF-8");
    let crates: BTreeSet<_> = text
        .lines()
        .map(|line| line.split(" (").next().unwrap_or(line))
        .filter_map(|line| line.split_once(" v"))
        .collect();
    crates.into_iter().map(|(name, _version)| name.to_owned()).collect()
}

#[test]
fn make_up_builds_the_crates_of_the_list_and_no_other() {
    let built = crates_of_up();
    let listed: Vec<_> = read(&root().join(LIST)).lines().map(str::to_owned).collect();
    let more: Vec<_> = built.iter().filter(|name| !listed.contains(name)).collect();
    let fewer: Vec<_> = listed.iter().filter(|name| !built.contains(name)).collect();
    assert!(
        built == listed,
        "`make up` builds {} crates, and {LIST} has {}. New: {more:?}; gone: {fewer:?}. If a new one is worth what a \
         first build takes longer, add it to the list.",
        built.len(),
        listed.len(),
    );
}

/// Passes without a release binary: a release build takes minutes, so this test makes none.
#[test]
fn the_binary_of_make_up_is_small() {
    let binary = root().join("target/release/ringback");
    match binary.metadata() {
        Ok(file) => assert!(file.len() <= MAX_BINARY, "{} bytes, at most {MAX_BINARY}", file.len()),
        Err(_) => eprintln!("left out: {} was not built (make up)", binary.display()),
    }
}
