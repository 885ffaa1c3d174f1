//! The Prometheus alarms: each uses metrics of the code, has a runbook entry and tests, and promtool accepts the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_norway::Value;

use crate::files::{read, root};
use crate::reference;

/// The alarms in the file of rules, by name.
fn alarms() -> BTreeMap<String, Value> {
    let file = parsed("deploy/prometheus/alerts.yaml");
    let groups = file["groups"].as_sequence().expect("groups");
    let rules = groups.iter().flat_map(|group| group["rules"].as_sequence().expect("rules"));
    rules.map(|rule| (rule["alert"].as_str().expect("a name").to_owned(), rule.clone())).collect()
}

fn parsed(file: &str) -> Value {
    let mut value: Value = serde_norway::from_str(&read(&root().join(file))).expect("YAML");
    value.apply_merge().expect("its merges are mappings");
    value
}

#[test]
fn every_alarm_is_on_metrics_of_the_code() {
    let known = reference::metrics::names();
    for (name, rule) in alarms() {
        let named = metrics_of(rule["expr"].as_str().expect("an expression"), &known);
        assert!(!named.is_empty(), "{name} is on no metric");
        let unknown: Vec<_> = named.iter().filter(|metric| !known.contains(*metric)).collect();
        assert!(unknown.is_empty(), "{name} is on {unknown:?}");
    }
}

#[test]
fn every_alarm_has_a_severity_a_summary_and_an_entry_that_says_what_to_do() {
    let text = read(&root().join("docs/operate/alarms.md"));
    let entries: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let alarms = alarms();
    assert_eq!(entries.iter().copied().collect::<BTreeSet<_>>(), alarms.keys().map(String::as_str).collect());
    for (name, rule) in &alarms {
        assert!(["page", "ticket"].contains(&rule["labels"]["severity"].as_str().expect("one")), "{name}");
        assert!(rule["annotations"]["summary"].is_string(), "{name} has no summary");
        let runbook = format!("docs/operate/alarms.md#{}", name.to_lowercase());
        assert_eq!(rule["annotations"]["runbook"], runbook.as_str(), "{name}");
    }
    for entry in text.split("\n## ").skip(1) {
        assert!(entry.contains("- **Do**") || entry.contains("Look at the same things"), "{entry}");
    }
}

#[test]
fn every_alarm_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() {
    let tests = parsed("deploy/prometheus/alerts.test.yaml");
    let (mut fires, mut is_quiet) = (BTreeSet::new(), BTreeSet::new());
    for test in tests["tests"].as_sequence().expect("tests") {
        for case in test["alert_rule_test"].as_sequence().expect("cases") {
            let name = case["alertname"].as_str().expect("a name").to_owned();
            let expected = case["exp_alerts"].as_sequence().is_some_and(|alerts| !alerts.is_empty());
            if expected {
                fires.insert(name)
            } else {
                is_quiet.insert(name)
            };
        }
    }
    let all: BTreeSet<_> = alarms().into_keys().collect();
    assert_eq!((&fires, &is_quiet), (&all, &all));
}

#[test]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    let directory = root().join("deploy/prometheus");
    for verb in ["check rules alerts.yaml", "test rules alerts.test.yaml"] {
        match promtool(&verb.split(' ').collect::<Vec<_>>(), &directory) {
            Some(Ok(())) => {}
            Some(Err(why)) => panic!("{why}"),
            None => return eprintln!("promtool is not installed: the alarms are not tested"),
        }
    }
}

pub(crate) fn metrics_of(expression: &str, known: &BTreeSet<String>) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let words = expression.split(|c| !is_part(c)).filter(|word| word.starts_with("ringback_"));
    let base = |word: &str| {
        let stems = [word, word.trim_end_matches("_bucket"), word.trim_end_matches("_count")];
        stems.into_iter().find(|stem| known.contains(*stem)).unwrap_or(word).to_owned()
    };
    words.map(base).collect()
}

/// Runs promtool, which `deploy/local/promtool.sh` gets for `make test`. Returns `None` if it is not installed, else
/// whether it succeeded, with its output as the error.
pub(crate) fn promtool(arguments: &[&str], directory: &Path) -> Option<Result<(), String>> {
    let own = root().join("target/tools/promtool");
    let program = if own.exists() { own } else { "promtool".into() };
    let output = Command::new(program).args(arguments).current_dir(directory).output().ok()?;
    let why = || String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Some(if output.status.success() { Ok(()) } else { Err(why()) })
}
