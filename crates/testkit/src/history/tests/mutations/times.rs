//! Mutations of when deliveries come and of how attempts are numbered.

use serde_json::json;

use super::{Mutation, calm, faulty};
use crate::history::Invariant::{
    AttemptNumbers, CountsAgree, DeadWithReason, Fencing, LatenessKnown, Liveness, LossNoticed,
    NoUnexplainedRepeat, NotEarly, OneLease, RetryTimes, TenantsApart,
};
use crate::history::tests::lines::Lines;

pub(super) const MUTATIONS: &[Mutation] = &[
    calm("the api's own clock is used for the due time", &[NotEarly], |lines| {
        let job = delayed(lines, "plain");
        lines.shift(lines.answer(lines.of("submit", &job)[0]), "due", -300);
        lines.shift_delivery(lines.of("arrive", &job)[0], -300);
    }),
    calm("the due time is truncated to seconds", &[NotEarly], |lines| {
        let jobs = lines.jobs("at");
        let due = |job: &str| lines.number(lines.answer(lines.of("submit", job)[0]), "due");
        let job = jobs.iter().find(|job| due(job) % 1_000 > 100).expect("most are").clone();
        let by = -i64::try_from(due(&job) % 1_000).expect("it fits");
        lines.shift(lines.answer(lines.of("submit", &job)[0]), "due", by);
        lines.shift_delivery(lines.of("arrive", &job)[0], by);
    }),
    calm("a job is delivered before its due time", &[NotEarly], |lines| {
        let arrive = lines.of("arrive", &delayed(lines, "plain"))[0];
        lines.set(arrive, "t", lines.host(lines.number(arrive, "due")) - 50_000);
    }),
    calm("a reschedule is forgotten", &[NotEarly], |lines| {
        let job = lines.job("moved");
        let due = lines.number(lines.answer(lines.of("submit", &job)[0]), "due");
        let arrive = lines.of("arrive", &job)[0];
        let by = i64::try_from(lines.number(arrive, "due") - due).expect("it fits");
        lines.shift_delivery(arrive, -by);
    }),
    calm("a pull job is reserved before its due time", &[NotEarly], |lines| {
        let lease = lines.of("lease", &delayed(lines, "pulled"))[0];
        lines.shift(lease, "t", -300_000);
    }),
    calm("an attempt number is skipped", &[AttemptNumbers], |lines| {
        lines.set(lines.of("arrive", &lines.job("patient"))[2], "attempt", 4);
    }),
    calm("attempts count from 0", &[AttemptNumbers], |lines| {
        lines.set(lines.of("arrive", &lines.job("gone"))[0], "attempt", 0);
        lines.set(lines.of("final", &lines.job("gone"))[0], "attempts", 0);
    }),
    calm("retries end one too late", &[AttemptNumbers], |lines| {
        let job = lines.job("exhausted");
        let end = lines.answer(lines.of("arrive", &job)[3]);
        lines.deliver(&job, 5, lines.number(end, "t") + 410_000, 503);
        let last = lines.of("final", &job)[0];
        lines.set(last, "attempts", 5);
        lines.set(last, "failures", 5);
    }),
    calm("a retry waits for the tier before its own", &[RetryTimes], |lines| {
        let arrives = lines.of("arrive", &lines.job("exhausted"));
        lines.shift_delivery(arrives[2], -90);
        lines.shift_delivery(arrives[3], -90);
    }),
    calm("all waits are alike: the jitter is 0", &[RetryTimes], |lines| {
        for job in lines.jobs("patient").into_iter().chain(lines.jobs("revived")) {
            for pair in lines.of("arrive", &job).windows(2).take(2) {
                let end = lines.number(lines.answer(pair[0]), "t");
                let due = lines.store(end) + 1 + 500;
                let by = i64::try_from(lines.number(pair[1], "due")).expect("it fits");
                lines.shift_delivery(pair[1], i64::try_from(due).expect("it fits") - by);
            }
        }
    }),
    calm("Retry-After is ignored", &[RetryTimes], |lines| {
        let is_second = |line: &usize| lines.number(*line, "attempt") == 2;
        let arrives = lines.with_tag("arrive").into_iter().filter(is_second);
        let asked = |line: &usize| {
            let job = lines.value(*line, "job");
            let first = lines.of("arrive", job.as_str().expect("a name"))[0];
            lines.value(lines.answer(first), "retry_after") == json!(300)
        };
        let arrive = arrives.into_iter().find(asked).expect("some answers have one");
        lines.shift_delivery(arrive, -150);
    }),
    calm("a retry is forgotten until a floor timer", &[RetryTimes, Liveness], |lines| {
        let arrive = lines.of("arrive", &lines.job("patient"))[2];
        lines.shift(arrive, "t", 10_000_000);
        lines.shift(lines.answer(arrive), "t", 10_000_000);
        lines.unset(arrive, "stamp");
    }),
    calm("an attempt is sent twice", &[Fencing], |lines| {
        lines.set(lines.of("arrive", &lines.job("patient"))[1], "attempt", 1);
        lines.set(lines.of("arrive", &lines.job("patient"))[2], "attempt", 2);
    }),
    faulty("the same attempt is sent by two notifiers", &[Fencing], |lines| {
        lines.set(lines.of("arrive", &lines.job("killed"))[1], "attempt", 1);
    }),
    calm("a lease is shorter than its attempt: two run at once", &[OneLease], |lines| {
        let arrives = lines.of("arrive", &lines.job("slow"));
        let start = lines.number(arrives[0], "t");
        let by = i64::try_from((lines.number(arrives[1], "t") - start) / 1_000).expect("it fits");
        lines.shift_delivery(arrives[1], 300 - by);
    }),
    calm("a success is not recorded, and the job is delivered again", &[NoUnexplainedRepeat], |lines| {
        let job = lines.job("plain");
        let end = lines.number(lines.answer(lines.of("arrive", &job)[0]), "t");
        lines.deliver(&job, 2, end + 100_000, 200);
    }),
    calm("a done job comes back after half a minute", &[NoUnexplainedRepeat], |lines| {
        let job = lines.job("at");
        let end = lines.number(lines.answer(lines.of("arrive", &job)[0]), "t");
        lines.deliver(&job, 2, end + 30_000_000, 200);
    }),
    faulty(
        "what faults explained happens without them",
        &[AttemptNumbers, CountsAgree, NoUnexplainedRepeat, DeadWithReason, LossNoticed],
        |lines| {
            for tag in ["fault", "healed", "exit"] {
                lines.drop(lines.with_tag(tag));
            }
        },
    ),
    calm("a due job is overlooked for ten seconds", &[Liveness], |lines| {
        let arrive = lines.of("arrive", &lines.job("plain"))[0];
        lines.shift(arrive, "t", 10_000_000);
        lines.shift(lines.answer(arrive), "t", 10_000_000);
        lines.unset(arrive, "stamp");
    }),
    calm("a due job is never looked at", &[Liveness], |lines| {
        let last = lines.of("final", &lines.job("pending"))[0];
        lines.set(last, "due", lines.store(5_000_000));
    }),
    calm("one tenant waits for another's backlog", &[TenantsApart], |lines| {
        late_topic(lines, 1);
    }),
    calm("a tenth of a tenant's jobs wait for another's backlog", &[TenantsApart], |lines| {
        late_topic(lines, 5);
    }),
    calm("ringback-due-at is missing", &[LatenessKnown], |lines| {
        lines.unset(lines.of("arrive", &lines.job("plain"))[0], "due");
    }),
    calm("the lateness counts from another time than the due time", &[LatenessKnown], |lines| {
        lines.shift(lines.of("arrive", &lines.job("plain"))[0], "due", -20);
    }),
    calm("lateness is recorded only for successes", &[LatenessKnown], |lines| {
        let metric =
            lines.all("metric", |fields| fields["name"] == "ringback_notifier_lateness_seconds_count");
        lines.shift(metric[0], "value", -100);
    }),
];

/// The first job of a kind that has a delay of half a second or more.
fn delayed(lines: &Lines, kind: &str) -> String {
    let is_delayed = |job: &String| lines.number(lines.of("submit", job)[0], "delay") >= 500;
    lines.jobs(kind).into_iter().find(is_delayed).expect("some are")
}

/// Makes every `every`-th plain job of the topic `calm` three seconds late, which no other invariant forbids.
fn late_topic(lines: &mut Lines, every: usize) {
    for job in lines.jobs("plain").iter().filter(|job| job.starts_with("calm/")).step_by(every) {
        let arrive = lines.of("arrive", job)[0];
        lines.shift(arrive, "t", 3_000_000);
        lines.shift(lines.answer(arrive), "t", 3_000_000);
    }
}
