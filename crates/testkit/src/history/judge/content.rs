//! What is delivered: only what was submitted, unchanged (`ContentUnchanged`), with the right webhook headers
//! (`WebhookHeaders`).

use super::job::Job;
use super::{Judgement, Run};
use crate::history::invariant::Invariant::{ContentUnchanged, NoSecondJob, WebhookHeaders};
use crate::history::records::Delivery;

/// How far `webhook-timestamp` may be from the arrival, in µs. It has whole seconds.
const STAMP_TOLERANCE: u64 = 6_000_000;

pub(super) fn check(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement) {
    for delivery in job.deliveries {
        check_origin(run, job, delivery, found);
        check_headers(run, job, delivery, found);
    }
    for lease in job.leases {
        found.findings.checked(ContentUnchanged);
        let mut possible = job.possible_submits();
        if !possible.any(|submit| submit.content.body == lease.body) {
            let what = format_args!("was reserved with a body that was not submitted");
            found.findings.violated(ContentUnchanged, Some(job.name), &[lease.line], what);
        }
    }
}

fn check_origin(run: &Run<'_>, job: &Job<'_>, delivery: &Delivery, found: &mut Judgement) {
    found.findings.checked(ContentUnchanged);
    let epsilon = run.tables.settings.epsilon;
    let possible = || job.possible_submits().filter(|submit| submit.span.sent <= delivery.start + epsilon);
    let what = if possible().next().is_none() {
        let Some(keys) = run.tables.anonymous.get(&delivery.content) else {
            let what = "was delivered, but no submit of it can have been accepted";
            return invented(job, delivery, what, found);
        };
        // Submits without an id may have made this job; but a key makes only one.
        let is_of_other =
            |key| run.used_keys.get(key).is_some_and(|other| run.tables.jobs.name(*other) != job.name);
        if keys.iter().all(is_of_other) && !run.forgets(0, delivery.start) {
            let what = format_args!("was delivered, but its idempotency key had made another job");
            found.findings.violated(NoSecondJob, Some(job.name), &[delivery.line], what);
        }
        return;
    } else if !possible().any(|submit| submit.content.body == delivery.content.body) {
        "was delivered with a body that was not submitted"
    } else if !possible().any(|submit| submit.content == delivery.content) {
        "was delivered to another URL or with other headers than submitted"
    } else {
        return;
    };
    invented(job, delivery, what, found);
}

fn invented(job: &Job<'_>, delivery: &Delivery, what: &str, found: &mut Judgement) {
    let mut lines: Vec<_> = job.submits.iter().flat_map(|submit| submit.span.lines()).collect();
    lines.push(delivery.line);
    found.counts.totals.invented += 1;
    found.findings.violated(ContentUnchanged, Some(job.name), &lines, what);
}

fn check_headers(run: &Run<'_>, job: &Job<'_>, delivery: &Delivery, found: &mut Judgement) {
    let first = &job.deliveries[0];
    if let Some((first_id, id)) = first.webhook.zip(delivery.webhook) {
        found.findings.checked(WebhookHeaders);
        if first_id != id && !job.may_begin_anew(delivery.start) {
            let what = format_args!("was delivered with two different webhook-ids");
            found.findings.violated(WebhookHeaders, Some(job.name), &[first.line, delivery.line], what);
        }
    } else if first.webhook.is_some() {
        let what = format_args!("was delivered without a webhook-id");
        found.findings.violated(WebhookHeaders, Some(job.name), &[delivery.line], what);
    }
    if let Some(is_right) = delivery.signed {
        found.findings.checked(WebhookHeaders);
        if !is_right {
            let what = format_args!("was delivered with a wrong signature");
            found.findings.violated(WebhookHeaders, Some(job.name), &[delivery.line], what);
        }
    }
    let now = run.tables.clocks.at(job.store(), delivery.start);
    if let Some((stamp, now)) = delivery.stamp.zip(now) {
        found.findings.checked(WebhookHeaders);
        let difference = (stamp * 1_000_000).abs_diff(now.middle());
        if difference > STAMP_TOLERANCE && !run.explains(delivery.start, delivery.start) {
            let seconds = difference / 1_000_000;
            let what = format_args!("was delivered with a webhook-timestamp that is {seconds} s off");
            found.findings.violated(WebhookHeaders, Some(job.name), &[delivery.line], what);
        }
    }
}
