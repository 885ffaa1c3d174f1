//! Documents agree with the tree: links, numbers of decisions, make targets; and every metric in the code is declared.

use std::collections::BTreeSet;
use std::path::Path;

use crate::files::{documents, files_below, read, root};
use crate::reference;

#[test]
fn every_metric_of_the_code_is_declared() {
    let declared = reference::metrics::names();
    let known: BTreeSet<_> = ["api", "carrier", "notifier", "archive", "feed", "service"]
        .iter()
        .flat_map(|name| files_below(&root().join("crates").join(name).join("src"), ".rs"))
        .flat_map(|path| metrics_in(&read(&path)))
        .collect();
    let undeclared: Vec<_> = known.difference(&declared).collect();
    assert_eq!(undeclared, [""; 0], "named in the code, and not in METRICS of a role");
    let has_start = |name: &&String| START.iter().any(|start| name.starts_with(start));
    assert_eq!(declared.iter().find(|name| !has_start(name)), None, "its beginning is not in START");
}

/// How the names of metrics begin: with the role that they are of, or with what they count.
const START: [&str; 15] = [
    "ringback_open_breakers",
    "ringback_api_",
    "ringback_audit_log_",
    "ringback_carrier_",
    "ringback_notifier_",
    "ringback_log_",
    "ringback_archive_",
    "ringback_archiver_",
    "ringback_feed_",
    "ringback_jobs",
    "ringback_missing_jobs",
    "ringback_tombstones_",
    "ringback_store_",
    "ringback_oldest_ready",
    "ringback_topic_",
];

/// The words between double quotes in Rust source that look like names of metrics.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let is_metric = |word: &&str| {
        START.iter().any(|start| word.starts_with(start))
            && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    text.split('"').filter(is_metric).map(str::to_owned).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut dead = Vec::new();
    for document in documents() {
        let text = read(&document);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => document.clone(),
                path => document.with_file_name("").join(path),
            };
            let found = target.exists() && (anchor.is_empty() || headings(&target).contains(anchor));
            if !found {
                dead.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert_eq!(dead, [""; 0]);
}

/// The headings of a document, as the anchors of links to them.
fn headings(document: &Path) -> BTreeSet<String> {
    let written = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
    };
    read(document).lines().filter(|line| line.starts_with('#')).map(written).collect()
}

#[test]
fn every_decision_has_a_number_of_its_own() {
    let text = read(&root().join("docs/internals/decisions.md"));
    let numbers = text.lines().filter_map(|line| line.strip_prefix("### ")?.split(' ').next());
    let mut numbers: Vec<_> = numbers.map(|number| number.parse::<usize>().expect("a number")).collect();
    numbers.sort_unstable();
    assert!(numbers.is_sorted_by(|one, next| one < next), "a number twice: {numbers:?}");
}

#[test]
fn every_make_target_that_is_named_exists() {
    let makefile = read(&root().join("Makefile"));
    let targets: BTreeSet<_> = makefile
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter_map(|line| Some(line.split_once(':')?.0))
        .collect();
    for document in documents() {
        let text = read(&document);
        // The text between backticks, one or three.
        for line in text.split('`').skip(1).step_by(2).flat_map(str::lines) {
            let Some(target) = line.trim().strip_prefix("make ").and_then(|rest| rest.split(' ').next())
            else {
                continue;
            };
            assert!(targets.contains(target), "{}: make {target}", document.display());
        }
    }
}
