//! The Grafana dashboards: complete names and panels, metrics that the code has, and expressions that promtool accepts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::alarms::{metrics_of, promtool};
use crate::files::{files_below, read, root};
use crate::reference;

/// The dashboards, each with its file name without the ending.
fn dashboards() -> Vec<(String, Value)> {
    let files = files_below(&root().join("deploy/grafana"), ".json");
    let name =
        |path: &std::path::Path| path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
    files.iter().map(|path| (name(path), serde_json::from_str(&read(path)).expect("JSON"))).collect()
}

/// The expressions of a dashboard, each with the title of its panel.
fn expressions(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let of_panel = |panel: &Value| {
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets.iter().map(|target| (text(&panel["title"]), text(&target["expr"]))).collect::<Vec<_>>()
    };
    panels.flat_map(of_panel).collect()
}

#[test]
fn each_has_a_name_of_its_own_and_panels_that_say_what_they_show() {
    let names: BTreeSet<_> = dashboards().into_iter().map(|(name, _)| name).collect();
    let wanted = ["overview", "notifier", "carrier", "store"].map(|name| format!("ringback-{name}"));
    assert_eq!(names, wanted.into());
    for (name, dashboard) in dashboards() {
        assert_eq!(dashboard["uid"], name.as_str());
        let panels = dashboard["panels"].as_array().expect("panels");
        let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
        assert_eq!(ids.len(), panels.len(), "{name}");
        for panel in panels.iter().filter(|panel| panel["type"] != "row") {
            assert!(panel["description"].as_str().is_some_and(|text| !text.is_empty()), "{}", panel["title"]);
            let grid = &panel["gridPos"];
            let end = grid["x"].as_u64().zip(grid["w"].as_u64()).map(|(x, w)| x + w);
            assert!(end.is_some_and(|end| end <= 24), "{}", panel["title"]);
        }
    }
}

#[test]
fn each_panel_is_on_metrics_of_the_code_and_every_gauge_of_jobs_is_on_one() {
    let known = reference::metrics::names();
    let mut shown = BTreeSet::new();
    for (name, dashboard) in dashboards() {
        for (title, expression) in expressions(&dashboard) {
            let metrics = metrics_of(&expression, &known);
            assert!(!metrics.is_empty() && metrics.is_subset(&known), "{name}, {title}: {metrics:?}");
            shown.extend(metrics);
        }
    }
    let missing: Vec<_> =
        known.difference(&shown).filter(|metric| !metric.starts_with("ringback_api_")).collect();
    // The log or other metrics show what these are about.
    let elsewhere = [
        "ringback_audit_log_failures_total",
        "ringback_feed_failures_total",
        "ringback_feed_pass_duration_seconds",
        "ringback_feed_remembered_rows",
        "ringback_archiver_failures_total",
        "ringback_archiver_lag_seconds",
        "ringback_carrier_unlogged_attempts_total",
        "ringback_store_clock_ahead_seconds",
        "ringback_store_evicts_keys",
    ];
    let missing: Vec<_> =
        missing.into_iter().filter(|metric| !elsewhere.contains(&metric.as_str())).collect();
    assert!(missing.is_empty(), "on no dashboard: {missing:?}");
}

#[test]
fn promtool_accepts_every_expression() {
    let mut rules = "groups:\n  - name: dashboards\n    rules:\n".to_owned();
    for (_, dashboard) in dashboards() {
        for (_, expression) in expressions(&dashboard) {
            let expression = Value::from(expression.replace("$__rate_interval", "5m"));
            rules.push_str(&format!("      - {{record: one, expr: {expression}}}\n"));
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("rules.yaml"), rules).expect("a file");
    match promtool(&["check", "rules", "--lint=none", "rules.yaml"], directory.path()) {
        Some(Ok(())) => {}
        Some(Err(why)) => panic!("{why}"),
        None => eprintln!("promtool is not installed: the expressions are not tested"),
    }
}
