//! Documents agree with the code: settings, metrics, links and make targets.

use std::collections::BTreeSet;
use std::path::Path;

use ringback_service::{Setting, config, settings};

use crate::files::{documents, files_below, read, root};

/// A setting as one binary has it: binary, variable, flag, default.
type Row = (String, String, String, String);

#[test]
fn the_settings_are_those_of_the_code() {
    let documented = documented_settings(&read(&root().join("docs/configuration.md")));
    let binaries: [(&str, &[&'static [Setting]]); 5] = [
        ("api", ringback_api::Config::SETTINGS),
        ("carrier", ringback_carrier::Config::SETTINGS),
        ("notifier", ringback_notifier::Config::SETTINGS),
        ("archiver", ringback_archiver::Config::SETTINGS),
        ("feed", ringback_feed::Config::SETTINGS),
    ];
    let mut known = BTreeSet::new();
    for (binary, groups) in binaries {
        let groups: Vec<_> = groups.iter().copied().chain([settings::SETTINGS]).collect();
        for setting in config::distinct(&groups) {
            let flag = setting.flag().unwrap_or_default();
            let row = (binary.to_owned(), setting.env(), flag, setting.default.to_owned());
            known.insert(row);
        }
    }
    let difference: Vec<_> = documented.symmetric_difference(&known).collect();
    assert!(difference.is_empty(), "in the table or in the code, but not in both: {difference:#?}");
}

/// The rows of the table that names flags, one per binary.
fn documented_settings(text: &str) -> BTreeSet<Row> {
    let plain = |cell: &str| cell.trim().trim_matches('`').to_owned();
    let mut rows = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("| `RINGBACK_")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').collect();
        let [variable, flag, default, users, meaning] = cells.as_slice() else {
            panic!("{} cells in place of five: {line}", cells.len());
        };
        assert!(!meaning.trim().is_empty(), "{variable} has no meaning");
        for user in users.split(',') {
            let row = (plain(user), plain(variable), plain(flag), plain(default));
            assert!(rows.insert(row), "listed twice: {line}");
        }
    }
    rows
}

#[test]
fn the_metrics_are_those_of_the_code() {
    let documented = metrics_in(&read(&root().join("docs/operations.md")), '`');
    let known: BTreeSet<_> = ["api", "carrier", "notifier", "archive", "feed", "service"]
        .iter()
        .flat_map(|name| files_below(&root().join("crates").join(name).join("src"), ".rs"))
        .flat_map(|path| metrics_in(&read(&path), '"'))
        .collect();
    assert!(!known.is_empty());
    let difference: Vec<_> = documented.symmetric_difference(&known).collect();
    assert_eq!(difference, [""; 0], "in operations.md or in the code, but not in both");
}

/// How the names of metrics begin: with the role that they are of, or with what they count.
const START: [&str; 14] = [
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

/// The names of metrics that stand between quotes.
pub(crate) fn metrics_in(text: &str, quote: char) -> BTreeSet<String> {
    let is_metric = |word: &&str| {
        START.iter().any(|start| word.starts_with(start))
            && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    text.split(quote).filter(is_metric).map(str::to_owned).collect()
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

/// The headings of a document, written as the ends of links to them.
fn headings(document: &Path) -> BTreeSet<String> {
    let written = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
    };
    read(document).lines().filter(|line| line.starts_with('#')).map(written).collect()
}

#[test]
fn every_decision_is_numbered_in_turn() {
    let mut names: Vec<_> = files_below(&root().join("docs/decisions"), ".md")
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort_unstable();
    for (name, number) in names.iter().zip(1..) {
        assert!(name.starts_with(&format!("{number:04}-")), "{name} is not number {number}");
    }
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
