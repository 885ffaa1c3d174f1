//! Words that standard terms have replaced must not come back in identifiers or file names.

use std::collections::BTreeSet;

use proc_macro2::TokenTree;

use crate::files::{files_below, root};
use crate::source::{each, text, tokens};

const FOLDERS: [&str; 2] = ["crates", "tests"];

/// Each word, and the term to use. A part of an identifier counts as a word.
const RETIRED: [(&str, &str); 32] = [
    ("told", "acknowledged, published or recorded"),
    ("untold", "pending"),
    ("teller", "outbox relay"),
    ("telling", "outbox entry"),
    ("tellings", "outbox entries"),
    ("courier", "Deliverer"),
    ("imprint", "SettleHint"),
    ("standback", "WakeBackoff"),
    ("lack", "ResourceBackoff"),
    ("lacks", "missing links"),
    ("setback", "PassBackoff"),
    ("setbacks", "PassBackoff"),
    ("bell", "DeadlineSignal"),
    ("bells", "DeadlineSignals"),
    ("reviver", "bulk revive"),
    ("revival", "bulk revive"),
    ("revivals", "bulk revives"),
    ("redrives", "bulk revives"),
    ("redriving", "revive"),
    ("redriven", "revived"),
    ("book", "SharedConfig"),
    ("claimant", "Holder"),
    ("witness", "AcceptedCounts"),
    ("fitness", "server_checks"),
    ("unjudged", "unverified"),
    ("lately", "recent"),
    ("graves", "tombstones"),
    ("buried", "ended"),
    ("doubt", "maybe_in_flight"),
    ("lapsed", "expired lease"),
    ("happened", "EventKind"),
    ("patience", "call_timeout"),
];

/// Types by their whole name: parts of these names are plain English.
const RETIRED_TYPES: [&str; 23] = [
    "Answer",
    "Audit",
    "Base",
    "Draw",
    "EdgeName",
    "EndKind",
    "EndKinds",
    "Hub",
    "Inbox",
    "Mark",
    "Moved",
    "News",
    "Note",
    "Noted",
    "Owner",
    "Places",
    "PullCaller",
    "Settled",
    "Tower",
    "Tries",
    "Verdict",
    "Wanted",
    "Word",
];

/// Names that stay: the folder, the name, and why it is right there.
const STAYS: [(&str, &str, &str); 3] = [
    ("crates/testkit/", "Answer", "what a receiver answers"),
    ("crates/chaos/", "Answer", "what a receiver of the testkit answers"),
    ("tests/", "Answer", "what a receiver of the testkit answers"),
];

#[test]
fn retired_words_are_no_identifiers() {
    let mut found = BTreeSet::new();
    for file in FOLDERS.iter().flat_map(|folder| files_below(&root().join(folder), ".rs")) {
        let path = file.strip_prefix(root()).expect("it is below").display().to_string();
        let stays =
            |name: &str| STAYS.iter().any(|(folder, stays, _)| path.starts_with(folder) && *stays == name);
        each(tokens(&file), &mut |token| {
            if let TokenTree::Ident(ident) = token {
                let name = text(ident);
                let advice = advice(&name).filter(|_| !stays(&name));
                found.extend(advice.map(|advice| format!("{path}: {name} ({advice})")));
            }
        });
    }
    assert!(found.is_empty(), "{} retired words are back: {found:#?}", found.len());
}

#[test]
fn retired_words_are_no_file_names() {
    let files = FOLDERS.iter().flat_map(|folder| files_below(&root().join(folder), ""));
    let found: Vec<_> = files
        .filter(|file| {
            file.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| advice(stem).is_some())
        })
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// The term to use in place of a name; `None` if the name is fine.
fn advice(name: &str) -> Option<&'static str> {
    if RETIRED_TYPES.contains(&name) {
        return Some("a name from the field");
    }
    let parts = parts(name);
    RETIRED.iter().find(|(word, _)| parts.iter().any(|part| part == word)).map(|(_, advice)| *advice)
}

/// The words of a name in `snake_case`, `CamelCase` or `CAPITALS`, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        if c == '_' || (after_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("there is one").extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase();
    }
    words
}

#[test]
fn a_name_is_judged_by_its_words() {
    for retired in ["told", "ToldJob", "MOST_UNTOLD", "by_courier", "Word"] {
        assert!(advice(retired).is_some(), "{retired}");
    }
    for fine in ["bellow", "is_word", "TowerToHyperService", "blackbox"] {
        assert!(advice(fine).is_none(), "{fine}");
    }
}
