//! Turns the lines of a history into records: names become numbers, and outcomes join their calls.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use super::clock::Clocks;
use super::digest::Digest;
use super::entry::{Answered, Arrive, Entry, Lease, MoveCall, Respond, Settle, Start, Submit};
use super::names::fingerprint;
use super::parsed_lines::{Settings, Tables};
use super::reader::Unreadable;
use super::records::{
    CallOutcome, CallRecord, CallRequest, Content, Delivery, FinalRecord, LeaseRecord, NEVER, NONE,
    SettleRecord, Span, StateRecord, SubmitRecord, TransitionRecord,
};

mod run;

/// How many lines with a canary are named.
const MAX_LEAKS: usize = 20;

/// The record of a call that has no outcome yet.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Submit(usize),
    Call(usize),
    Settle(usize),
    /// When it was sent.
    Reserve(u64),
}

/// Reads lines in their order.
#[derive(Default)]
pub(crate) struct Ingest {
    tables: Tables,
    has_started: bool,
    pending: HashMap<u64, Pending>,
    /// The deliveries that have not ended, by their numbers.
    running: HashMap<u64, usize>,
    /// The places of open faults, by their numbers.
    faults: HashMap<u64, usize>,
    canaries: Vec<Vec<u8>>,
}

type IngestResult = Result<(), Unreadable>;

impl Ingest {
    pub(crate) fn take(&mut self, line: u32, text: &[u8], entry: Entry<'_>) -> IngestResult {
        let is_start = matches!(entry, Entry::Start(_));
        if is_start == self.has_started {
            let why = if is_start { "a second start" } else { "the first line is not a start" };
            return Err(Unreadable::new(line, why));
        }
        self.has_started = true;
        self.look_for_canaries(line, text, &entry);
        match entry {
            Entry::Start(start) => self.start(&start),
            Entry::Submit(submit) => return self.submit(line, &submit),
            Entry::Cancel(call) => {
                let record = self.call(call.job, Span::new(line, call.t), CallRequest::Cancel);
                return self.begin_call(line, call.n, record);
            }
            Entry::Move(call) => return self.move_job(line, &call),
            Entry::Reserve(reserve) => return self.begin(line, reserve.n, Pending::Reserve(reserve.t)),
            Entry::Settle(settle) => return self.settle(line, &settle),
            Entry::Ok(answer) => return self.answered(line, &answer),
            Entry::Fail(answer) => {
                return self.ended(line, answer.n, |span| {
                    (span.outcome, span.ended, span.status) = (CallOutcome::Refused, answer.t, answer.status);
                });
            }
            Entry::Info(call) => return self.ended(line, call.n, |_| {}),
            Entry::Lease(lease) => self.lease(line, &lease),
            Entry::Arrive(arrive) => return self.arrive(line, &arrive),
            Entry::Respond(respond) => return self.respond(line, &respond),
            Entry::State(seen) => {
                let job = self.tables.jobs.number(seen.job);
                let (asked, known, state, places) = (seen.asked, seen.t, seen.state, seen.places);
                self.tables.states.push(StateRecord { job, line, asked, known, state, places });
            }
            Entry::Transition(transition) => {
                let job = self.tables.jobs.number(transition.job);
                let (time, from, to) = (transition.t, transition.from, transition.to);
                self.tables.transitions.push(TransitionRecord {
                    job,
                    line,
                    time,
                    transition: transition.transition,
                    from,
                    to,
                });
            }
            Entry::Final(last) => self.tables.finals.push(FinalRecord {
                job: self.tables.jobs.number(last.job),
                line,
                time: last.t,
                state: last.state,
                due: last.due,
                attempts: last.attempts,
                failures: last.failures,
                reason: self.tables.texts.number(&last.reason),
            }),
            other => return self.run_line(line, other),
        }
        Ok(())
    }

    /// The sorted tables, once all lines are read. A reserve without an outcome counts as unknown. Fails if the
    /// history is empty.
    pub(crate) fn finish(mut self, lines: u32) -> Result<Tables, Unreadable> {
        if !self.has_started {
            return Err(Unreadable::new(1, "the history is empty"));
        }
        let tables = &mut self.tables;
        tables.lines = lines;
        let unanswered =
            self.pending.values().filter(|pending| matches!(pending, Pending::Reserve(_))).count();
        tables.unknown_reserves += unanswered as u64;
        tables.clocks = Clocks::new(tables.settings.wall, std::mem::take(&mut tables.run.readings));
        for submit in tables.submits.iter().filter(|submit| submit.job == NONE && submit.span.may_count()) {
            tables.anonymous.entry(submit.content).or_default().push(submit.key);
        }
        tables.run.losses.sort_unstable_by_key(|loss| loss.t);
        tables.sort();
        Ok(self.tables)
    }

    fn start(&mut self, start: &Start<'_>) {
        self.tables.settings = Settings {
            name: start.name.to_string(),
            wall: start.wall,
            epsilon: start.epsilon,
            live: start.live,
            timeout: u64::from(start.timeout) * 1_000,
            policy: start.policy,
            loss: start.loss,
        };
    }

    fn look_for_canaries(&mut self, line: u32, text: &[u8], entry: &Entry<'_>) {
        if let Entry::Canary(canary) = entry {
            self.canaries.push(canary.text.as_bytes().to_vec());
        } else if self.canaries.iter().any(|canary| contains(text, canary)) {
            let (lines, count) = &mut self.tables.run.leaks;
            *count += 1;
            if lines.len() < MAX_LEAKS {
                lines.push(line);
            }
        }
    }

    fn submit(&mut self, line: u32, submit: &Submit<'_>) -> IngestResult {
        let tables = &mut self.tables;
        let is_anonymous = submit.job.ends_with('/');
        let key = submit.key.map(|key| format!("{} {key}", submit.job));
        let record = SubmitRecord {
            job: if is_anonymous { NONE } else { tables.jobs.number(submit.job) },
            span: Span::new(line, submit.t),
            content: content(submit.url.unwrap_or_default(), submit.headers, submit.body),
            at: submit.at,
            delay: submit.delay.unwrap_or_default(),
            due: None,
            policy: submit.policy.unwrap_or(tables.settings.policy),
            timeout: submit.timeout.map_or(tables.settings.timeout, |timeout| u64::from(timeout) * 1_000),
            key: key.map_or(NONE, |key| tables.texts.number(&key)),
            store: submit.store,
            is_pull: submit.url.is_none(),
            replaces: submit.replace,
            is_anonymous,
        };
        let place = tables.submits.len();
        tables.submits.push(record);
        self.begin(line, submit.n, Pending::Submit(place))
    }

    fn move_job(&mut self, line: u32, call: &MoveCall<'_>) -> IngestResult {
        let mut record = self.call(call.job, Span::new(line, call.t), CallRequest::Move(call.kind));
        (record.at, record.delay) = (call.at, call.delay.unwrap_or_default());
        self.begin_call(line, call.n, record)
    }

    fn call(&mut self, job: &str, span: Span, asked: CallRequest) -> CallRecord {
        CallRecord {
            job: self.tables.jobs.number(job),
            span,
            asked,
            at: None,
            delay: 0,
            state: None,
            due: None,
            is_in_flight_unknown: false,
        }
    }

    fn begin_call(&mut self, line: u32, n: u64, record: CallRecord) -> IngestResult {
        let place = self.tables.calls.len();
        self.tables.calls.push(record);
        self.begin(line, n, Pending::Call(place))
    }

    fn settle(&mut self, line: u32, settle: &Settle<'_>) -> IngestResult {
        let token = self.tables.tokens.number(settle.token);
        let job = self.tables.token_jobs.get(token as usize).copied().unwrap_or(NONE);
        self.tables.token_jobs.resize(self.tables.tokens.len() as usize, NONE);
        let span = Span::new(line, settle.t);
        let place = self.tables.settles.len();
        self.tables.settles.push(SettleRecord { job, span, token, kind: settle.kind, deadline: 0 });
        self.begin(line, settle.n, Pending::Settle(place))
    }

    fn lease(&mut self, line: u32, lease: &Lease<'_>) {
        let job = self.tables.jobs.number(lease.job);
        let token = self.tables.tokens.number(lease.token);
        self.tables.token_jobs.resize(self.tables.tokens.len() as usize, NONE);
        self.tables.token_jobs[token as usize] = job;
        let asked = match self.pending.get(&lease.n) {
            Some(Pending::Reserve(sent)) => *sent,
            Some(Pending::Submit(_) | Pending::Call(_) | Pending::Settle(_)) | None => lease.t,
        };
        self.tables.leases.push(LeaseRecord {
            job,
            line,
            call: lease.n,
            token,
            attempt: lease.attempt,
            asked,
            granted: lease.t,
            deadline: lease.deadline,
            body: lease.body.fingerprint(),
        });
    }

    /// Keeps a call until its outcome comes. Fails if another call with its number is under way.
    fn begin(&mut self, line: u32, n: u64, pending: Pending) -> IngestResult {
        match self.pending.insert(n, pending) {
            None => Ok(()),
            Some(_) => Err(Unreadable::new(line, format_args!("a call with the number {n} is under way"))),
        }
    }

    fn answered(&mut self, line: u32, answer: &Answered<'_>) -> IngestResult {
        let pending = self.pending.get(&answer.n).copied();
        self.ended(line, answer.n, |span| {
            (span.outcome, span.ended) = (CallOutcome::Ok, answer.t);
            span.status = answer.status.unwrap_or(200);
        })?;
        match pending {
            Some(Pending::Submit(place)) => {
                let job = answer.job.map(|job| self.tables.jobs.number(job));
                let submit = &mut self.tables.submits[place];
                submit.due = answer.due;
                // An answer about another job leaves the submit with its own, which then is lost.
                if submit.is_anonymous {
                    submit.job = job.unwrap_or(NONE);
                } else if let Some(other) = job.filter(|job| *job != submit.job) {
                    self.tables.mistaken.push((line, submit.job, other));
                }
            }
            Some(Pending::Call(place)) => {
                let call = &mut self.tables.calls[place];
                (call.state, call.due) = (answer.state, answer.due);
                call.is_in_flight_unknown = answer.in_flight_unknown;
            }
            Some(Pending::Settle(place)) => {
                self.tables.settles[place].deadline = answer.deadline.unwrap_or_default();
            }
            Some(Pending::Reserve(_)) | None => {}
        }
        Ok(())
    }

    /// Joins an outcome with the call `n`. Of a reserve, only an unknown outcome is counted. Fails if no such call is
    /// under way.
    fn ended(&mut self, line: u32, n: u64, set: impl FnOnce(&mut Span)) -> IngestResult {
        let span = match self.pending.remove(&n) {
            Some(Pending::Submit(place)) => &mut self.tables.submits[place].span,
            Some(Pending::Call(place)) => &mut self.tables.calls[place].span,
            Some(Pending::Settle(place)) => &mut self.tables.settles[place].span,
            Some(Pending::Reserve(_)) => {
                let mut span = Span::new(line, 0);
                set(&mut span);
                self.tables.unknown_reserves += u64::from(span.outcome == CallOutcome::Unknown);
                return Ok(());
            }
            None => return Err(Unreadable::new(line, format_args!("no call has the number {n}"))),
        };
        span.outcome_line = line;
        set(span);
        Ok(())
    }

    fn arrive(&mut self, line: u32, arrive: &Arrive<'_>) -> IngestResult {
        let place = self.tables.deliveries.len();
        match self.running.entry(arrive.d) {
            Slot::Vacant(slot) => slot.insert(place),
            Slot::Occupied(_) => {
                let why = format_args!("a delivery with the number {} is under way", arrive.d);
                return Err(Unreadable::new(line, why));
            }
        };
        self.tables.deliveries.push(Delivery {
            job: self.tables.jobs.number(arrive.job),
            line,
            end_line: NONE,
            attempt: arrive.attempt,
            start: arrive.t,
            end: NEVER,
            due: arrive.due,
            content: content(arrive.url, arrive.headers, arrive.body),
            webhook: arrive.webhook.map(fingerprint),
            stamp: arrive.stamp,
            retry_after: 0,
            signed: arrive.signed,
            status: 0,
            is_cut: true,
            is_unexpected: false,
        });
        Ok(())
    }

    fn respond(&mut self, line: u32, respond: &Respond) -> IngestResult {
        let Some(place) = self.running.remove(&respond.d) else {
            return Err(Unreadable::new(line, format_args!("no delivery has the number {}", respond.d)));
        };
        let delivery = &mut self.tables.deliveries[place];
        delivery.end_line = line;
        delivery.end = respond.t;
        delivery.status = respond.status;
        delivery.is_cut = respond.cut || respond.status == 0;
        delivery.is_unexpected = respond.unexpected;
        delivery.retry_after = respond.retry_after.unwrap_or_default() * 1_000;
        Ok(())
    }
}

fn content(url: &str, headers: Digest, body: Digest) -> Content {
    Content { body: body.fingerprint(), target: fingerprint(url) ^ headers.fingerprint().rotate_left(1) }
}

/// Whether `text` contains `part`. An empty part is never found.
fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len().max(1)).any(|window| window == part)
}
