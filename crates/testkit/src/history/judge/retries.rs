//! Attempts and the waits between them: their numbers and how many there are (`AttemptNumbers`), that none is made
//! twice (Fencing), and the tiers with their jitter and Retry-After (`RetryTimes`).

use std::collections::BTreeMap;

use super::job::{DeliveryResult, Job};
use super::{Judgement, Run, millis};
use crate::history::entry::Policy;
use crate::history::findings::Findings;
use crate::history::invariant::Invariant::{AttemptNumbers, Fencing, RetryTimes};
use crate::history::records::{CallRequest, Delivery};

/// The longest Retry-After that counts, in µs.
const MAX_RETRY_AFTER: u64 = 86_400_000_000;
/// A jitter of less than this cannot be distinguished from lateness, in µs.
const MIN_JITTER: f64 = 20_000.0;
/// How many waits of a policy are looked at, and how many there must be.
const MAX_WAITS: usize = 4_096;
const MIN_WAITS: usize = 100;

pub(super) fn check(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement, spread: &mut Spread) {
    if let Some(first) = job.deliveries.first() {
        check_first(run, job, first, &mut found.findings);
    }
    for pair in job.deliveries.windows(2) {
        check_numbers(run, job, &pair[0], &pair[1], &mut found.findings);
    }
    if !job.may_begin_anew(u64::MAX) {
        check_waits(run, job, found, spread);
    }
}

fn check_first(run: &Run<'_>, job: &Job<'_>, first: &Delivery, findings: &mut Findings) {
    findings.checked(AttemptNumbers);
    if first.attempt != 1 && (first.attempt == 0 || !run.explains(job.begin(), first.start)) {
        let what = format_args!("was delivered for the first time as attempt {}", first.attempt);
        findings.violated(AttemptNumbers, Some(job.name), &[first.line], what);
    }
}

fn check_numbers(run: &Run<'_>, job: &Job<'_>, one: &Delivery, next: &Delivery, findings: &mut Findings) {
    findings.checked(AttemptNumbers);
    findings.checked(Fencing);
    let (from, to) = (one.attempt, next.attempt);
    if job.is_forgotten(next.start) {
        return;
    }
    if from == to {
        let what = format_args!("was delivered twice as attempt {to}");
        findings.violated(Fencing, Some(job.name), &[one.line, next.line], what);
    } else if from + 1 != to && !run.explains(one.start, next.start) {
        let what = format_args!("was delivered as attempt {to} after attempt {from}, without a fault");
        findings.violated(AttemptNumbers, Some(job.name), &[one.line, next.line], what);
    }
}

/// Checks that a job has no more certain failures than its policy allows, and the waits after them unless the job was
/// moved. Adds each wait of a known tier to `spread`.
fn check_waits(run: &Run<'_>, job: &Job<'_>, found: &mut Judgement, spread: &mut Spread) {
    let policy = job.accepted().or(job.submits.first()).and_then(|submit| policy(run, submit.policy));
    let Some(policy) = policy else { return };
    // The failures that were counted for certain, and those that may have been.
    let (mut certain, mut possible) = (0_u32, 0_u32);
    for (place, delivery) in job.deliveries.iter().enumerate() {
        let next = job.deliveries.get(place + 1);
        let is_failure = job.verdict(delivery) == DeliveryResult::Failure;
        let until = next.map_or(job.end_of(delivery), |next| next.start);
        let is_certain = is_failure && !run.explains(delivery.start, until);
        possible += 1;
        certain += u32::from(is_certain);
        found.findings.checked(AttemptNumbers);
        if policy.max > 0 && certain > policy.max {
            let what = format_args!("has {certain} failed attempts, but its policy allows {}", policy.max);
            return found.findings.violated(AttemptNumbers, Some(job.name), &delivery.lines(), what);
        }
        let Some(next) = next.filter(|_| is_certain) else { continue };
        if job.possible_calls(|asked| matches!(asked, CallRequest::Move(_))).next().is_none() {
            let wait = Wait { policy, tiers: (certain, possible), delivery, next };
            wait.check(run, job, &mut found.findings);
            if certain == possible {
                spread.add(run, job, &wait);
            }
        }
    }
}

fn policy<'a>(run: &Run<'a>, number: u32) -> Option<&'a Policy> {
    run.tables.run.policies.get(&number)
}

/// The wait between a failure and the next attempt.
struct Wait<'a> {
    policy: &'a Policy,
    /// The least and the most failures before it.
    tiers: (u32, u32),
    delivery: &'a Delivery,
    next: &'a Delivery,
}

impl Wait<'_> {
    /// The tier of the policy after this many failures, in µs. The last tier repeats.
    fn tier(&self, failures: u32) -> u64 {
        let delays = &self.policy.delays;
        let place = (failures.max(1) as usize - 1).min(delays.len().saturating_sub(1));
        delays.get(place).copied().unwrap_or_default() * 1_000
    }

    fn check(&self, run: &Run<'_>, job: &Job<'_>, findings: &mut Findings) {
        findings.checked(RetryTimes);
        let tiers = || (self.tiers.0..=self.tiers.1).map(|failures| self.tier(failures));
        let after = self.delivery.retry_after.min(MAX_RETRY_AFTER);
        let least = tiers().min().unwrap_or_default().max(after);
        let most = tiers().max().unwrap_or_default().max(after);
        let lines = [self.delivery.lines(), self.next.lines()].concat();
        let waited = self.next.start.saturating_sub(job.earliest_end_of(self.delivery));
        if waited + run.tables.settings.epsilon < least {
            let (waited, least) = (millis(waited), millis(least));
            let what = format_args!("was tried again after {waited} ms, but its wait is {least} ms");
            findings.violated(RetryTimes, Some(job.name), &lines, what);
        }
        let Some(live) = run.tables.settings.live else { return };
        let due = job.end_of(self.delivery) + (most as f64 * (1.0 + self.policy.jitter)) as u64;
        if self.next.start > run.disturbed.end_around(due + live) {
            let (late, most) = (millis(self.next.start - due), millis(most));
            let what = format_args!("was tried again {late} ms later than its wait of {most} ms and jitter");
            findings.violated(RetryTimes, Some(job.name), &lines, what);
        }
    }
}

/// For each policy, its waits: the share of the jitter that each has used, its due time and its line.
#[derive(Default)]
pub(super) struct Spread(BTreeMap<u32, Vec<(f64, u64, u32)>>);

impl Spread {
    fn add(&mut self, run: &Run<'_>, job: &Job<'_>, wait: &Wait<'_>) {
        let tier = wait.tier(wait.tiers.1);
        let jitter = tier as f64 * wait.policy.jitter;
        let Some(due) = wait.next.due.filter(|_| jitter >= MIN_JITTER && wait.delivery.retry_after == 0)
        else {
            return;
        };
        let waits = self.0.entry(wait.policy.p).or_default();
        if waits.len() < MAX_WAITS {
            let end = run.tables.clocks.about(job.store(), job.end_of(wait.delivery));
            let over = (due * 1_000) as f64 - (end + tier) as f64;
            waits.push((over / jitter, due, wait.next.line));
        }
    }

    /// Checks, for each policy with [`MIN_WAITS`] waits or more, that at most a fifth have the same due time and that
    /// the middle 80 % of the waits spread over at least 20 % of the jitter.
    pub(super) fn check(self, findings: &mut Findings) {
        for (policy, mut waits) in self.0 {
            if waits.len() < MIN_WAITS {
                continue;
            }
            findings.checked(RetryTimes);
            waits.sort_unstable_by_key(|(_, due, _)| *due);
            let same =
                waits.chunk_by(|(_, one, _), (_, other, _)| one == other).max_by_key(|same| same.len());
            if let Some(same) = same.filter(|same| same.len() * 5 > waits.len()) {
                let (count, all, (_, due, line)) = (same.len(), waits.len(), same[0]);
                let what = format_args!(
                    "{count} of {all} retries of policy {policy} were due at the same time, {due}"
                );
                findings.violated(RetryTimes, None, &[line, same[count - 1].2], what);
            }
            waits.sort_unstable_by(|(one, ..), (other, ..)| one.total_cmp(other));
            let (low, high) = (waits[waits.len() / 10], waits[waits.len() * 9 / 10]);
            // If waits are spread evenly, eight tenths of the jitter lie between these two.
            if high.0 - low.0 < 0.2 {
                let percent = (high.0 - low.0) * 100.0;
                let what = format_args!(
                    "the waits of policy {policy} spread over only {percent:.0} % of their jitter, not 80 %"
                );
                findings.violated(RetryTimes, None, &[low.2, high.2], what);
            }
        }
    }
}
