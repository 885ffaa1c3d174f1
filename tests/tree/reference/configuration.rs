//! The page of settings, from the settings that each binary declares.

use std::fmt::Write as _;

use ringback_service::config::{ALL_NAMES, Exposure};
use ringback_service::{Setting, config, settings};

use super::{cell, sentence};

const HEAD: &str = include_str!("heads/configuration.md");

/// The binaries with their settings, beside those of every process.
const BINARIES: [(&str, &[&[Setting]]); 5] = [
    ("api", ringback_api::Config::SETTINGS),
    ("carrier", ringback_carrier::Config::SETTINGS),
    ("notifier", ringback_notifier::Config::SETTINGS),
    ("archiver", ringback_archiver::Config::SETTINGS),
    ("feed", ringback_feed::Config::SETTINGS),
];

/// A setting, and the binaries that take it in this form.
struct Row {
    setting: Setting,
    binaries: Vec<&'static str>,
}

/// All settings, each with its binaries. A setting with another default or meaning in another binary has several rows.
fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (binary, groups) in BINARIES {
        let groups: Vec<_> = groups.iter().copied().chain([settings::SETTINGS]).collect();
        for setting in config::distinct(&groups) {
            let known = rows.iter_mut().find(|row| {
                let known = row.setting;
                (known.name, known.default, known.help) == (setting.name, setting.default, setting.help)
            });
            match known {
                Some(row) => row.binaries.push(binary),
                None => rows.push(Row { setting, binaries: vec![binary] }),
            }
        }
    }
    rows
}

/// Another process would warn that nobody reads the variable.
#[test]
fn every_setting_is_among_the_names_that_all_processes_know() {
    let unknown = |row: &Row| !ALL_NAMES.contains(&row.setting.name);
    let unknown: Vec<_> = rows().into_iter().filter(unknown).map(|row| row.setting.name).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

pub(super) fn page() -> String {
    let rows = rows();
    let mut groups: Vec<&[&str]> = Vec::new();
    for row in &rows {
        if !groups.contains(&row.binaries.as_slice()) {
            groups.push(&row.binaries);
        }
    }
    groups.sort_by_key(|binaries| std::cmp::Reverse(binaries.len()));
    let mut page = HEAD.to_owned();
    for binaries in groups {
        let heading =
            if binaries.len() == BINARIES.len() { "all processes".to_owned() } else { binaries.join(", ") };
        write!(page, "\n## Settings of {heading}\n\n| variable | default | meaning |\n|---|---|---|\n")
            .expect("a text");
        for Row { setting, .. } in rows.iter().filter(|row| row.binaries == binaries) {
            let default = match setting.default {
                "" => String::new(),
                default => format!("`{default}`"),
            };
            let secret = if setting.exposure == Exposure::Secret { " A secret." } else { "" };
            let meaning = cell(&sentence(setting.help));
            writeln!(page, "| `{}` | {default} | {meaning}{secret} |", setting.env()).expect("a text");
        }
    }
    page
}
