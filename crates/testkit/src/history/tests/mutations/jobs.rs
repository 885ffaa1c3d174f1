//! Mutations of how jobs end and of what is delivered.

use serde_json::json;

use super::{Mutation, calm, faulty};
use crate::history::Invariant::{
    ContentUnchanged, DeadWithReason, DurableAccept, NoSecondJob, NotAfterCancel, NothingLost, OneState,
    OnlySuccessCompletes, WebhookHeaders,
};
use crate::history::tests::lines::Lines;

pub(super) const MUTATIONS: &[Mutation] = &[
    faulty("pop before push: a job is gone after it was taken", &[NothingLost], |lines| {
        let job = lines.job("plain");
        lines.drop_deliveries(&lines.of("arrive", &job));
    }),
    faulty("acknowledged before the POST, and killed between the two", &[NothingLost], |lines| {
        let job = lines.job("skipped");
        lines.drop_deliveries(&lines.of("arrive", &job));
    }),
    faulty("a pull job is removed when it is reserved", &[NothingLost], |lines| {
        let job = lines.job("pulled");
        drop_settles(lines, &job);
    }),
    calm("the body is re-serialised", &[ContentUnchanged], |lines| {
        let (job, other) = (lines.job("plain"), lines.job("at"));
        let body = lines.value(lines.of("submit", &other)[0], "body");
        lines.set(lines.of("arrive", &job)[0], "body", body);
    }),
    calm(
        "a connection is used again after bytes of another answer: another URL",
        &[ContentUnchanged],
        |lines| {
            let arrive = lines.of("arrive", &lines.job("plain"))[0];
            lines.set(arrive, "url", "http://127.0.0.1:8080/other");
        },
    ),
    calm("a header is lost", &[ContentUnchanged], |lines| {
        let (job, other) = (lines.job("plain"), lines.job("at"));
        let headers = lines.value(lines.of("submit", &other)[0], "headers");
        lines.set(lines.of("arrive", &job)[0], "headers", headers);
    }),
    calm("a refused submit is delivered", &[ContentUnchanged], |lines| {
        let job = lines.job("refused");
        let t = lines.number(lines.of("submit", &job)[0], "t");
        lines.deliver(&job, 1, t + 2_000_000, 200);
    }),
    calm("a job that nobody submitted is delivered", &[ContentUnchanged], |lines| {
        let arrive = lines.copy(lines.of("arrive", &lines.job("plain"))[0]);
        lines.set(arrive, "job", "busy/ghost");
        lines.set(arrive, "d", lines.fresh());
        lines.meter("ringback_notifier_lateness_seconds_count", 1);
    }),
    calm("a consumer gets another body", &[ContentUnchanged], |lines| {
        let body = lines.value(lines.with_tag("submit")[0], "body");
        lines.set(lines.of("lease", &lines.job("pulled"))[0], "body", body);
    }),
    calm("a cancelled job is delivered", &[NotAfterCancel], |lines| {
        let job = lines.job("cancelled");
        let cancel = lines.answer(lines.of("cancel", &job)[1]);
        let t = lines.number(cancel, "t") + 4_000_000;
        let due = lines.value(lines.answer(lines.of("submit", &job)[0]), "due");
        let arrive = lines.deliver(&job, 1, t, 200);
        lines.set(arrive, "due", due);
    }),
    calm("cancel ignores a job that is leased", &[NotAfterCancel], |lines| {
        let job = lines.job("flight");
        let end = lines.answer(lines.of("arrive", &job)[0]);
        let t = lines.number(end, "t") + 130_000;
        lines.deliver(&job, 2, t, 200);
    }),
    calm("cancel of an unknown job makes one", &[NotAfterCancel], |lines| {
        let cancel = lines.of("cancel", &lines.job("nobody"))[0];
        let refused = lines.answer(cancel);
        let (t, n) = (lines.number(refused, "t"), lines.number(refused, "n"));
        lines.replace(refused, "ok", &json!({ "t": t, "n": n, "state": "cancelled" }));
    }),
    calm("a cancelled job is reserved", &[NotAfterCancel], |lines| {
        let job = lines.job("cancelled");
        let t = lines.number(lines.answer(lines.of("cancel", &job)[1]), "t") + 4_000_000;
        let (n, body) = (lines.fresh(), lines.value(lines.of("submit", &job)[0], "body"));
        let deadline = lines.store(t) + 1_000;
        lines.add(
            "lease",
            &json!({
                "t": t, "n": n, "job": job, "token": "late", "attempt": 1, "deadline": deadline, "body": body,
            }),
        );
    }),
    calm("a cancelled job is delayed again", &[NotAfterCancel], |lines| {
        let job = lines.job("cancelled");
        let t = lines.number(lines.with_tag("end")[0], "t");
        lines.add("final", &json!({ "t": t, "job": job, "state": "delayed", "attempts": 0, "failures": 0 }));
        lines.count("cancelled", -1);
        lines.count("delayed", 1);
    }),
    calm("a job is dead after the attempt during which it was cancelled", &[NotAfterCancel], |lines| {
        let job = lines.job("flight");
        lines.set(lines.answer(lines.of("arrive", &job)[0]), "status", 410);
        let t = lines.number(lines.with_tag("end")[0], "t");
        lines.add(
            "final",
            &json!({
                "t": t, "job": job, "state": "dead", "attempts": 1, "failures": 1, "reason": "gone",
            }),
        );
        lines.count("cancelled", -1);
        lines.count("dead", 1);
    }),
    calm("a job is cancelled that nobody cancelled", &[OneState], |lines| {
        let job = lines.job("plain");
        let t = lines.number(lines.with_tag("end")[0], "t");
        lines
            .add("final", &json!({ "t": t, "job": job, "state": "cancelled", "attempts": 1, "failures": 0 }));
    }),
    calm("a repeated cancel is refused", &[NotAfterCancel], |lines| {
        let job = lines.job("cancelled");
        let repeated = lines.answer(lines.of("cancel", &job)[1]);
        let (t, n) = (lines.number(repeated, "t"), lines.number(repeated, "n"));
        lines.replace(repeated, "fail", &json!({ "t": t, "n": n, "status": 409 }));
    }),
    calm("a 3xx is taken as a success", &[OnlySuccessCompletes], |lines| {
        let job = lines.job("exhausted");
        let arrives = lines.of("arrive", &job);
        lines.set(lines.answer(arrives[0]), "status", 302);
        lines.drop_deliveries(&arrives[1..]);
        lines.drop(lines.of("final", &job));
        lines.count("dead", -1);
        lines.count("done", 1);
    }),
    calm("a timeout is taken as a success", &[OnlySuccessCompletes], |lines| {
        let job = lines.job("slow");
        let arrives = lines.of("arrive", &job);
        let end = lines.answer(arrives[0]);
        lines.set(end, "status", 0);
        lines.set(end, "cut", true);
        lines.drop_deliveries(&arrives[1..]);
    }),
    calm("a partial answer is taken as a success", &[OnlySuccessCompletes], |lines| {
        let end = lines.answer(lines.of("arrive", &lines.job("at"))[0]);
        lines.set(end, "cut", true);
    }),
    calm("another body than the topic expects is taken as a success", &[OnlySuccessCompletes], |lines| {
        let end = lines.answer(lines.of("arrive", &lines.job("plain"))[0]);
        lines.set(end, "unexpected", true);
    }),
    calm("a success is recorded as the last failure", &[OnlySuccessCompletes, DeadWithReason], |lines| {
        let job = lines.job("exhausted");
        let last = lines.answer(lines.of("arrive", &job)[3]);
        lines.set(last, "status", 200);
        lines.drop(lines.with_tag("metric"));
    }),
    faulty("idempotency is not atomic: one key makes two jobs", &[NoSecondJob], |lines| {
        let job = lines.job("keyed");
        let [first, second] = [0, 1].map(|place| lines.of("ok", &job)[place]);
        lines.set(second, "job", "busy/twin");
        lines.set(second, "status", 201);
        // The second submit was sent a little later than the first one.
        lines.shift(second, "due", 10);
        let t = lines.number(first, "t") + 3_000_000;
        let arrive = lines.copy(lines.of("arrive", &job)[0]);
        let d = lines.fresh();
        for (field, value) in [("job", json!("busy/twin")), ("t", json!(t)), ("d", json!(d))] {
            lines.set(arrive, field, value);
        }
        lines.shift(arrive, "due", 10);
        lines.add("respond", &json!({ "t": t + 500, "d": d, "status": 200 }));
    }),
    faulty("a key makes a second job after a lost answer", &[NoSecondJob], |lines| {
        let job = lines.job("keyed");
        let first = lines.of("ok", &job)[0];
        let (t, n) = (lines.number(first, "t"), lines.number(first, "n"));
        lines.replace(first, "info", &json!({ "t": t, "n": n }));
        let arrive = lines.copy(lines.of("arrive", &job)[0]);
        lines.set(arrive, "job", "busy/twin");
        lines.set(arrive, "d", lines.fresh());
    }),
    faulty("a key takes other content", &[NoSecondJob], |lines| {
        let job = lines.job("keyed");
        let key = format!("key-{}", job.rsplit('-').next().expect("a number"));
        let other = lines.all("submit", |fields| fields.get("key").is_some_and(|this| *this == *key))[2];
        let refused = lines.answer(other);
        let (t, n) = (lines.number(refused, "t"), lines.number(refused, "n"));
        lines.replace(refused, "ok", &json!({ "t": t, "n": n, "status": 200, "job": job }));
    }),
    faulty("a repeated submit makes the job again", &[NoSecondJob], |lines| {
        let job = lines.job("repeated");
        first_is_answered(lines, &job);
        lines.set(lines.answer(lines.of("submit", &job)[1]), "status", 201);
    }),
    faulty("other content is taken as a repetition", &[NoSecondJob], |lines| {
        let job = lines.job("repeated");
        first_is_answered(lines, &job);
        let body = lines.value(lines.of("submit", &lines.job("plain"))[0], "body");
        lines.set(lines.of("submit", &job)[1], "body", body);
    }),
    faulty("a repeated submit is refused", &[NoSecondJob], |lines| {
        let job = lines.job("repeated");
        first_is_answered(lines, &job);
        let second = lines.answer(lines.of("submit", &job)[1]);
        let (t, n) = (lines.number(second, "t"), lines.number(second, "n"));
        lines.replace(second, "fail", &json!({ "t": t, "n": n, "status": 409 }));
    }),
    faulty("a job is dead because the store could not be reached", &[DeadWithReason], |lines| {
        let job = lines.job("exhausted");
        let arrives = lines.of("arrive", &job);
        lines.set(lines.of("final", &job)[0], "attempts", 2);
        lines.drop_deliveries(&arrives[2..]);
    }),
    calm("retries end one too early", &[DeadWithReason], |lines| {
        let job = lines.job("exhausted");
        let arrives = lines.of("arrive", &job);
        let last = lines.of("final", &job)[0];
        lines.set(last, "attempts", 3);
        lines.set(last, "failures", 3);
        lines.drop_deliveries(&arrives[3..]);
    }),
    calm("a job is gone without a 410", &[DeadWithReason], |lines| {
        let end = lines.answer(lines.of("arrive", &lines.job("gone"))[0]);
        lines.set(end, "status", 400);
    }),
    calm("a job is dead for a reason of our own", &[DeadWithReason], |lines| {
        let last = lines.of("final", &lines.job("exhausted"))[0];
        lines.set(last, "reason", "redis-error");
    }),
    calm("each attempt has a webhook-id of its own", &[WebhookHeaders], |lines| {
        let arrive = lines.of("arrive", &lines.job("patient"))[1];
        lines.set(arrive, "webhook", "msg_other");
    }),
    calm("a retry has no webhook-id", &[WebhookHeaders], |lines| {
        lines.unset(lines.of("arrive", &lines.job("patient"))[1], "webhook");
    }),
    calm("the webhook-timestamp is that of the submit", &[WebhookHeaders], |lines| {
        let arrive = lines.of("arrive", &lines.job("plain"))[0];
        lines.shift(arrive, "stamp", -3_600);
    }),
    calm("a signature is wrong", &[WebhookHeaders], |lines| {
        let arrive = lines.of("arrive", &lines.job("plain"))[0];
        lines.set(arrive, "signed", false);
    }),
    faulty("a submit is answered with 2xx while the store is away", &[DurableAccept], |lines| {
        let job = lines.job("outage");
        first_is_answered(lines, &job);
        let submit = lines.of("submit", &job)[0];
        let (answer, again) = (lines.answer(submit), lines.answer(lines.of("submit", &job)[1]));
        lines.set(answer, "t", lines.number(submit, "t") + 2_000);
        lines.set(again, "status", 200);
    }),
    calm("the answer to a submit is that of another", &[DurableAccept], |lines| {
        let (job, other) = (lines.job("plain"), lines.job("at"));
        lines.set(lines.answer(lines.of("submit", &job)[0]), "job", other);
    }),
];

/// Replaces the outcome of a job's first submit by an answer 201, with the due time of the second submit.
fn first_is_answered(lines: &mut Lines, job: &str) {
    let [first, second] = [0, 1].map(|place| lines.answer(lines.of("submit", job)[place]));
    let (t, n, due) = (lines.number(first, "t"), lines.number(first, "n"), lines.number(second, "due"));
    lines.replace(first, "ok", &json!({ "t": t, "n": n, "status": 201, "job": job, "due": due }));
}

/// Removes the settles of a job's leases, and their answers.
fn drop_settles(lines: &mut Lines, job: &str) {
    let tokens: Vec<_> =
        lines.of("lease", job).into_iter().map(|lease| lines.value(lease, "token")).collect();
    let settles = lines.all("settle", |fields| tokens.contains(&fields["token"]));
    let answers: Vec<_> = settles.iter().map(|settle| lines.answer(*settle)).collect();
    lines.drop([settles, answers].concat());
}
