//! The state of a generated history: clocks, numbers, random choices, and lines of calls, deliveries and final states.

use std::io::{self, Write};

use rand::RngExt as _;
use rand::rngs::StdRng;

use crate::history::digest::Digest;
use crate::history::entry::{
    Answered, Arrive, Entry, Final, JobState, Ledger, NotAnswered, Rejected, Respond, Submit,
};

/// The wall clock at the start, in µs since 1970.
pub(super) const WALL: u64 = 1_795_000_000_000_000;
/// How far the store's clock is ahead, in µs.
pub(super) const AHEAD: i64 = 3_500_000;
/// Number, tiers in ms, failures, jitter.
pub(super) const POLICIES: [(u32, &[u64], u32, f64); 2] =
    [(1, &[100, 200, 400], 4, 0.1), (2, &[500], 3, 0.5)];
pub(super) const URL: &str = "http://127.0.0.1:8080/hook";
/// The seconds of a stretch in which the store is down, or a fault could change what happens.
const AVOIDED: std::ops::Range<u64> = 38_000_000..46_000_000;
/// The time in which jobs of a stretch are submitted, in µs.
const SUBMITS: u64 = 60_000_000;

/// A history that is being made.
pub(super) struct Scene {
    rng: StdRng,
    lines: Vec<(u64, String)>,
    next: u64,
    pub(super) ledger: Ledger,
    pub(super) completed: u64,
    pub(super) deliveries: u64,
    pub(super) created: u64,
    finals: Vec<(String, JobState, u64, u32, u32, &'static str)>,
}

/// A job that is to be submitted.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) url: Option<&'static str>,
    pub(super) body: Digest,
    pub(super) headers: Digest,
    pub(super) at: Option<u64>,
    pub(super) delay: Option<u64>,
    pub(super) policy: usize,
    pub(super) key: Option<String>,
    pub(super) replace: bool,
}

/// An attempt: its number, when it is due by the store in ms, and when it starts at the earliest.
pub(super) struct Attempt {
    pub(super) number: u32,
    pub(super) due: u64,
    pub(super) since: u64,
}

/// A delivery that has begun.
pub(super) struct OpenDelivery {
    pub(super) d: u64,
    pub(super) start: u64,
}

impl Scene {
    pub(super) fn new(rng: StdRng) -> Self {
        Self {
            rng,
            lines: Vec::new(),
            next: 1,
            ledger: Ledger::default(),
            completed: 0,
            deliveries: 0,
            created: 0,
            finals: Vec::new(),
        }
    }

    /// Adds a line with the host's time `t`. Lines may be added in any order.
    pub(super) fn push(&mut self, t: u64, entry: &Entry<'_>) {
        let line = serde_json::to_string(entry).expect("an entry has only names for keys");
        self.lines.push((t, line));
    }

    /// Writes the lines added since the last write, sorted by time. Returns their number.
    pub(super) fn write(&mut self, out: &mut impl Write) -> io::Result<u64> {
        self.lines.sort_by_key(|(t, _)| *t);
        for (_, line) in &self.lines {
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")?;
        }
        let written = self.lines.len() as u64;
        self.lines.clear();
        Ok(written)
    }

    /// A number that no other call or delivery has.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A random number from `low` to below `high`.
    pub(super) fn random(&mut self, low: u64, high: u64) -> u64 {
        self.rng.random_range(low..high)
    }

    /// A random time for a submit in the stretch from `base`, outside of [`AVOIDED`].
    pub(super) fn moment(&mut self, base: u64) -> u64 {
        loop {
            let time = self.random(0, SUBMITS);
            if !AVOIDED.contains(&time) {
                return base + time;
            }
        }
    }

    /// The time in ms, rounded up, that the store's clock shows at the host's time `t`.
    pub(super) fn store(&self, t: u64) -> u64 {
        (WALL + t).saturating_add_signed(AHEAD).div_ceil(1_000)
    }

    /// The host's time at which the store's clock shows `millis`.
    pub(super) fn host(&self, millis: u64) -> u64 {
        (millis * 1_000).saturating_add_signed(-AHEAD) - WALL
    }

    pub(super) fn draft(&mut self, kind: &str, number: u64) -> Draft {
        let topic = if number.is_multiple_of(4) { "calm" } else { "busy" };
        let name = format!("{topic}/{kind}-{number}");
        Draft {
            url: Some(URL),
            body: Digest::of(name.as_bytes()),
            headers: Digest::of_headers([("x-kind", kind)]),
            at: None,
            delay: Some(self.random(0, 1_000)),
            policy: 0,
            key: None,
            replace: false,
            name,
        }
    }

    /// Adds the request of a submit, without an outcome. Returns the number of the call.
    pub(super) fn send(&mut self, draft: &Draft, t: u64) -> u64 {
        let n = self.number();
        self.push(
            t,
            &Entry::Submit(Submit {
                t,
                n,
                job: &draft.name,
                url: draft.url,
                body: draft.body,
                headers: draft.headers,
                at: draft.at,
                delay: draft.delay,
                policy: (draft.policy > 0).then(|| POLICIES[draft.policy].0),
                timeout: None,
                key: draft.key.as_deref(),
                replace: draft.replace,
                store: 0,
            }),
        );
        n
    }

    /// Submits a new job. Returns the time of the answer and the due time.
    pub(super) fn submit(&mut self, draft: &Draft, t: u64) -> (u64, u64) {
        let n = self.send(draft, t);
        let (accepted, answered) = (t + self.random(100, 800), t + self.random(900, 2_000));
        let due = self.accept(draft, accepted);
        self.created += 1;
        self.answer(answered, n, 201, draft, due);
        (answered, due)
    }

    /// Counts a new job as accepted by the store at `t`, without a line. Returns its due time.
    pub(super) fn accept(&mut self, draft: &Draft, t: u64) -> u64 {
        self.ledger.accepted += 1;
        let now = self.store(t);
        draft.at.map_or(now + draft.delay.unwrap_or_default(), |at| at.max(now))
    }

    /// Adds the answer to a submit: `status`, and the job as delayed.
    pub(super) fn answer(&mut self, t: u64, n: u64, status: u16, draft: &Draft, due: u64) {
        let (status, job, due) = (Some(status), Some(draft.name.as_str()), Some(due));
        let state = Some(JobState::Delayed);
        self.push(t, &Entry::Ok(Answered { t, n, status, job, state, due, ..Answered::default() }));
    }

    /// Adds a successful answer to call `n`.
    pub(super) fn ok(&mut self, t: u64, n: u64, state: Option<JobState>, due: Option<u64>) {
        self.push(t, &Entry::Ok(Answered { t, n, state, due, ..Answered::default() }));
    }

    pub(super) fn refuse(&mut self, t: u64, n: u64, status: u16) {
        self.push(t, &Entry::Fail(Rejected { t, n, status }));
    }

    /// Adds the line that the outcome of call `n` is unknown.
    pub(super) fn give_up(&mut self, t: u64, n: u64) {
        self.push(t, &Entry::Info(NotAnswered { t, n }));
    }

    /// Adds the arrival of a delivery, up to 3 ms after the attempt may start.
    pub(super) fn arrive(&mut self, draft: &Draft, attempt: &Attempt) -> OpenDelivery {
        let start = self.host(attempt.due).max(attempt.since) + self.random(200, 3_000);
        let d = self.number();
        let webhook = format!("msg_{}", draft.name.replace('/', "_"));
        self.deliveries += 1;
        self.push(
            start,
            &Entry::Arrive(Arrive {
                t: start,
                d,
                job: &draft.name,
                attempt: attempt.number,
                due: Some(attempt.due),
                webhook: Some(&webhook),
                stamp: Some(self.store(start) / 1_000),
                signed: Some(true),
                url: draft.url.unwrap_or_default(),
                body: draft.body,
                headers: draft.headers,
            }),
        );
        OpenDelivery { d, start }
    }

    /// Adds the end of a delivery. The status 0 means that it was cut.
    pub(super) fn respond(&mut self, t: u64, d: u64, status: u16, retry_after: Option<u64>) {
        let cut = status == 0;
        self.push(t, &Entry::Respond(Respond { t, d, status, cut, unexpected: false, retry_after }));
    }

    /// Adds a delivery that succeeds, and counts the job as done. Returns the time of its end.
    pub(super) fn succeed(&mut self, draft: &Draft, attempt: &Attempt) -> u64 {
        let begun = self.arrive(draft, attempt);
        let end = begun.start + self.random(100, 20_000);
        self.respond(end, begun.d, 200, None);
        self.ledger.done += 1;
        self.completed += 1;
        end
    }

    /// Adds a delivery that fails with `status` and a Retry-After of `after` ms. Returns the next attempt.
    pub(super) fn fail(
        &mut self,
        draft: &Draft,
        attempt: &Attempt,
        status: u16,
        after: Option<u64>,
    ) -> Attempt {
        let begun = self.arrive(draft, attempt);
        let end = begun.start + self.random(100, 20_000);
        self.respond(end, begun.d, status, after);
        self.after_failure(draft, attempt.number, attempt.number, end, after)
    }

    /// The attempt after a failure that ended at `end` and was stored up to 1.5 ms later. The longer of the policy's
    /// tier and `after` counts, plus jitter.
    pub(super) fn after_failure(
        &mut self,
        draft: &Draft,
        attempt: u32,
        failures: u32,
        end: u64,
        after: Option<u64>,
    ) -> Attempt {
        let (_, delays, _, jitter) = POLICIES[draft.policy];
        let tier = delays[(failures as usize - 1).min(delays.len() - 1)].max(after.unwrap_or_default());
        let settled = end + self.random(200, 1_500);
        let spread = self.random(0, (tier as f64 * jitter) as u64 + 1);
        let due = self.store(settled) + tier + spread;
        Attempt { number: attempt + 1, due, since: settled }
    }

    /// Counts a job as delayed or dead at the end, and keeps its final line for [`Self::push_finals`]. Panics for
    /// other states.
    pub(super) fn leave(
        &mut self,
        draft: &Draft,
        state: JobState,
        due: u64,
        counts: (u32, u32),
        why: &'static str,
    ) {
        match state {
            JobState::Delayed => self.ledger.delayed += 1,
            JobState::Dead => self.ledger.dead += 1,
            other => unreachable!("no job is left {other:?}"),
        }
        self.finals.push((draft.name.clone(), state, due, counts.0, counts.1, why));
    }

    /// Adds the final lines that [`Self::leave`] has kept.
    pub(super) fn push_finals(&mut self, t: u64) {
        for (name, state, due, attempts, failures, reason) in std::mem::take(&mut self.finals) {
            let (job, due, reason) = (name.as_str(), Some(due), reason.into());
            self.push(t, &Entry::Final(Final { t, job, state, due, attempts, failures, reason }));
        }
    }
}

pub(super) const fn first(due: u64) -> Attempt {
    Attempt { number: 1, due, since: 0 }
}
