//! Release binaries contain no crash points, debug binaries do. A release build that does not exist is not searched.

use std::fs;
use std::path::PathBuf;

use crate::sources::root;

/// A crash point of each kind of crate.
const NAMES: [&str; 3] = ["carrier.after_claim", "notifier.before_post", "embedded.after_commit"];

#[test]
fn only_builds_with_debug_assertions_have_crash_points() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    assert!(
        !manifest.contains("debug-assertions = true"),
        "only the profile dev has them, which is Cargo's default"
    );
    // The search itself works.
    assert_eq!(found_in(&root().join("target/debug/ringback")), NAMES);
    for binary in ["ringback", "ringback-api", "ringback-carrier", "ringback-notifier"] {
        for profile in ["release", "dist"] {
            // A build that does not exist passes.
            assert_eq!(
                found_in(&root().join("target").join(profile).join(binary)),
                [""; 0],
                "{profile} {binary}"
            );
        }
    }
}

fn found_in(binary: &PathBuf) -> Vec<&'static str> {
    let bytes = fs::read(binary).unwrap_or_default();
    let has = |name: &&str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    NAMES.into_iter().filter(has).collect()
}
