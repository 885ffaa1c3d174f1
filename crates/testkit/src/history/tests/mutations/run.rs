//! Mutations of counts, processes and the store.

use serde_json::json;

use super::{Mutation, calm, faulty};
use crate::history::Invariant::{
    CountsAgree, LossNoticed, ProcessesHealthy, RecordsIndexed, ResourcesBounded, SecretsHidden,
};

pub(super) const MUTATIONS: &[Mutation] = &[
    calm("a job is in no index", &[RecordsIndexed], |lines| {
        lines.set(lines.with_tag("check")[0], "findings", 1);
    }),
    calm("a key has no prefix", &[RecordsIndexed], |lines| {
        lines.set(lines.with_tag("check")[0], "foreign", 1);
    }),
    calm("the check finds a wrong count", &[CountsAgree], |lines| {
        lines.set(lines.with_tag("check")[0], "miscounts", 1);
    }),
    calm("a counter is doubled when its call is repeated", &[CountsAgree], |lines| {
        let accepted = lines.number(lines.with_tag("ledger")[0], "accepted");
        let accepted = i64::try_from(accepted).expect("it fits");
        lines.count("accepted", accepted);
        lines.count("done", accepted);
    }),
    calm("a counter is changed outside the script, and lost", &[CountsAgree], |lines| {
        lines.count("done", -1);
    }),
    calm("a repair counts a delivered job as missing", &[CountsAgree], |lines| {
        lines.count("done", -1);
        lines.set(lines.with_tag("ledger")[0], "missing", 1);
    }),
    calm("a dead job counts as done", &[CountsAgree], |lines| {
        lines.count("dead", -1);
        lines.count("done", 1);
    }),
    calm("a cancel is counted twice", &[CountsAgree], |lines| {
        let cancelled = lines.number(lines.with_tag("ledger")[0], "cancelled");
        let by = i64::try_from(cancelled * 2).expect("it fits");
        lines.count("cancelled", by);
        lines.count("done", -by);
    }),
    calm("an attempt is counted twice in the record", &[CountsAgree], |lines| {
        lines.shift(lines.of("final", &lines.job("exhausted"))[0], "attempts", 1);
    }),
    calm("a success is counted twice in the metrics", &[CountsAgree], |lines| {
        let metric =
            lines.all("metric", |fields| fields.get("label").is_some_and(|label| label == "complete"));
        let value = lines.number(metric[0], "value");
        lines.set(metric[0], "value", value * 2);
    }),
    faulty("a process that is left has counted more than there was", &[CountsAgree], |lines| {
        let name = "ringback_notifier_attempts_total";
        lines.add(
            "metric",
            &json!({ "t": 9, "pid": 101, "name": name, "label": "complete", "value": 1_000_000 }),
        );
    }),
    calm("memory grows beyond its limit", &[ResourcesBounded], |lines| {
        lines.set(lines.with_tag("sample")[1], "value", 100_001);
    }),
    calm("memory does not return to the baseline", &[ResourcesBounded], |lines| {
        let samples = lines.with_tag("sample");
        let first = lines.number(samples[0], "value");
        lines.set(samples[samples.len() - 1], "value", first * 107 / 100);
    }),
    calm("a process ends with a failure", &[ProcessesHealthy], |lines| {
        let exit = lines.with_tag("exit")[0];
        lines.set(exit, "status", 101);
    }),
    faulty("a process that nobody killed is killed", &[ProcessesHealthy], |lines| {
        let exit = lines.all("exit", |fields| fields.get("signal").is_some())[0];
        lines.set(exit, "pid", 4_711);
    }),
    calm("a task panics", &[ProcessesHealthy], |lines| {
        let text = "thread 'main' panicked at \"src\"";
        lines.add("log", &json!({ "t": 9, "pid": 101, "level": "panic", "text": text }));
    }),
    faulty("an error is logged that nobody knows", &[ProcessesHealthy], |lines| {
        lines.unset(lines.with_tag("log")[0], "class");
    }),
    faulty("an empty store is not noticed", &[LossNoticed], |lines| {
        lines.drop(lines.with_tag("alarm"));
    }),
    faulty("an empty store is noticed too late", &[LossNoticed], |lines| {
        lines.shift(lines.with_tag("alarm")[0], "t", 2_500_000);
    }),
    faulty("an empty store accepts jobs", &[LossNoticed], |lines| {
        let fault = lines.all("fault", |fields| fields["class"] == "amnesia")[0];
        let (t, n) = (lines.number(fault, "t") + 3_000_000, lines.fresh());
        let submit = lines.copy(lines.of("submit", &lines.job("plain"))[0]);
        for (field, value) in
            [("t", json!(t)), ("n", json!(n)), ("job", json!("busy/new")), ("delay", json!(0))]
        {
            lines.set(submit, field, value);
        }
        lines.add("ok", &json!({ "t": t + 900, "n": n, "status": 201, "job": "busy/new" }));
        lines.deliver("busy/new", 1, t + 9_000, 200);
        lines.count("accepted", 1);
        lines.count("done", 1);
    }),
    calm("a secret is in a log line", &[SecretsHidden], |lines| {
        let text = "sent with key canary-51c7-9";
        lines.add("log", &json!({ "t": 9, "pid": 101, "level": "error", "class": "known", "text": text }));
    }),
    calm("a secret is in the metrics", &[SecretsHidden], |lines| {
        lines.set(lines.with_tag("scan")[0], "found", 1);
    }),
];
