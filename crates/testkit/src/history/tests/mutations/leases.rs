//! Mutations of leases of consumers, locks of carriers, and states of jobs.

use serde_json::json;

use super::{Mutation, calm, faulty};
use crate::history::Invariant::{AttemptNumbers, Fencing, Liveness, OneLease, OneState, StaleReceipts};
use crate::history::tests::lines::Lines;

pub(super) const MUTATIONS: &[Mutation] = &[
    faulty("no fence check: a carrier that was stopped has an effect", &[Fencing], |lines| {
        let stale = lines.all("effect", |fields| fields.get("fenced").is_some())[0];
        lines.unset(stale, "fenced");
    }),
    faulty("the fencing token comes from a counter that was lost", &[Fencing], |lines| {
        let claim = lines.all("claim", |fields| fields["pid"] == 102)[0];
        lines.shift(claim, "token", -5);
    }),
    faulty("a token is used by another process", &[Fencing], |lines| {
        let effect = lines.all("effect", |fields| fields["pid"] == 102)[0];
        lines.set(effect, "pid", 101);
    }),
    calm("a lease does not raise the attempt number", &[Fencing], |lines| {
        lines.set(lines.of("lease", &lines.job("expired"))[1], "attempt", 1);
    }),
    calm("a lease lowers the attempt number", &[AttemptNumbers, StaleReceipts], |lines| {
        lines.set(lines.of("lease", &lines.job("pullretry"))[0], "attempt", 3);
    }),
    calm("one receipt is given twice", &[Fencing, StaleReceipts], |lines| {
        let [first, second] = [0, 1].map(|place| lines.of("lease", &lines.job("pullretry"))[place]);
        let (token, other) = (lines.value(first, "token"), lines.value(second, "token"));
        for line in [lines.all("settle", |fields| fields["token"] == other), vec![second]].concat() {
            lines.set(line, "token", token.clone());
        }
    }),
    calm("a lease is granted while another consumer holds the job", &[OneLease], |lines| {
        let [first, second] = [0, 1].map(|place| lines.of("lease", &lines.job("expired"))[place]);
        let t = lines.number(first, "t") + 200_000;
        lines.set(second, "t", t);
    }),
    calm("a renewal does not count", &[OneLease, StaleReceipts], |lines| {
        let job = lines.job("renewed");
        let lease = lines.of("lease", &job)[0];
        let again = lines.copy(lease);
        let (n, t) = (lines.fresh(), lines.number(lease, "t") + 1_050_000);
        for (field, value) in
            [("token", json!("another")), ("attempt", json!(2)), ("t", json!(t)), ("n", json!(n))]
        {
            lines.set(again, field, value);
        }
    }),
    calm("two calls for one move: a job is in two states", &[OneState], |lines| {
        lines.set(lines.of("state", &lines.job("observed"))[0], "places", 2);
    }),
    calm("two calls for one move: a job is in no state", &[OneState], |lines| {
        lines.set(lines.of("state", &lines.job("observed"))[0], "places", 0);
    }),
    calm("a done job is delayed again", &[OneState], |lines| {
        let job = lines.job("observed");
        let done = lines.number(lines.of("state", &job)[1], "t");
        lines.add("state", &json!({ "t": done + 900, "asked": done + 500, "job": job, "state": "delayed" }));
    }),
    calm("a done job is cancelled", &[OneState], |lines| {
        let job = lines.job("observed");
        lines.add(
            "transition",
            &json!({ "t": 9, "job": job, "transition": "cancel", "from": "done", "to": "cancelled" }),
        );
    }),
    calm("a job is completed twice", &[OneState], |lines| {
        let job = lines.job("observed");
        lines.copy(lines.of("transition", &job)[3]);
    }),
    calm("a job is promoted before it is in any state", &[OneState], |lines| {
        let job = lines.job("observed");
        lines.set(lines.of("transition", &job)[1], "from", "nothing");
    }),
    calm("a stale receipt finishes a job", &[StaleReceipts], |lines| {
        let job = lines.job("expired");
        let stale = lines.value(lines.of("lease", &job)[0], "token");
        let refused = lines.answer(lines.all("settle", |fields| fields["token"] == stale)[0]);
        accept(lines, refused);
    }),
    calm("a receipt that nobody was given finishes a job", &[StaleReceipts], |lines| {
        settle(lines, "forged", "finish", 50_000_000);
    }),
    calm("a finished job is retried by the same receipt", &[StaleReceipts], |lines| {
        let lease = lines.of("lease", &lines.job("pulled"))[0];
        let (token, t) = (lines.value(lease, "token"), lines.number(lease, "t"));
        settle(lines, token.as_str().expect("a text"), "retry", t + 500_000);
    }),
    calm("a finished job's lease is renewed", &[StaleReceipts], |lines| {
        let lease = lines.of("lease", &lines.job("pulled"))[0];
        let (token, t) = (lines.value(lease, "token"), lines.number(lease, "t"));
        settle(lines, token.as_str().expect("a text"), "renew", t + 500_000);
    }),
    calm("a lease that ran out is not returned", &[Liveness], |lines| {
        let job = lines.job("expired");
        let leases = lines.of("lease", &job);
        let (token, deadline) = (lines.value(leases[1], "token"), lines.number(leases[0], "deadline"));
        let settles = lines.all("settle", |fields| fields["token"] == token);
        let answers: Vec<_> = settles.iter().map(|settle| lines.answer(*settle)).collect();
        let t = lines.number(lines.with_tag("end")[0], "t");
        lines.add(
            "final",
            &json!({
                "t": t, "job": job, "state": "reserved", "due": deadline, "attempts": 1, "failures": 0,
            }),
        );
        lines.drop([vec![leases[1]], settles, answers].concat());
        lines.count("done", -1);
        lines.count("reserved", 1);
    }),
];

/// Replaces a refusal by a success.
fn accept(lines: &mut Lines, refused: usize) {
    let (t, n) = (lines.number(refused, "t"), lines.number(refused, "n"));
    lines.replace(refused, "ok", &json!({ "t": t, "n": n }));
}

/// Adds a settle at `t` that is accepted.
fn settle(lines: &mut Lines, token: &str, kind: &str, t: u64) {
    let n = lines.fresh();
    lines.add("settle", &json!({ "t": t, "n": n, "token": token, "kind": kind }));
    lines.add("ok", &json!({ "t": t + 500, "n": n }));
}
