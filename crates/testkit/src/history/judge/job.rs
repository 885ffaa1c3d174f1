//! Iterates over the jobs of a history, each with its records in the order of time and what follows from them.

use crate::history::entry::Loss;
use crate::history::parsed_lines::Tables;
use crate::history::records::{
    CallRecord, CallRequest, Delivery, FinalRecord, JobRecord, LeaseRecord, NEVER, SettleRecord, StateRecord,
    SubmitRecord, TransitionRecord,
};

/// What the history has of a job.
pub(crate) struct Job<'a> {
    /// `topic/id`.
    pub(crate) name: &'a str,
    pub(crate) submits: &'a [SubmitRecord],
    pub(crate) calls: &'a [CallRecord],
    pub(crate) deliveries: &'a [Delivery],
    pub(crate) leases: &'a [LeaseRecord],
    pub(crate) settles: &'a [SettleRecord],
    pub(crate) states: &'a [StateRecord],
    pub(crate) transitions: &'a [TransitionRecord],
    /// How it was at the end.
    pub(crate) last: Option<&'a FinalRecord>,
    timeout: u64,
    /// When the store lost what the job had come to, if it did: then the job goes on as it was earlier.
    lost: Option<u64>,
    /// When it lost what clients had been answered.
    lost_calls: Option<u64>,
}

/// What a delivery came to, as the receiver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryResult {
    /// A complete 2xx in time.
    Success,
    Failure,
    /// It did not end, or its success came when the attempt may have timed out.
    Unknown,
}

impl Job<'_> {
    pub(crate) fn topic(&self) -> &str {
        self.name.split_once('/').map_or(self.name, |(topic, _)| topic)
    }

    /// The submits that were accepted or, as their outcome is unknown, may have been.
    pub(crate) fn possible_submits(&self) -> impl Iterator<Item = &SubmitRecord> {
        self.submits.iter().filter(|submit| submit.span.may_count())
    }

    /// The first submit that was accepted for certain.
    pub(crate) fn accepted(&self) -> Option<&SubmitRecord> {
        self.submits.iter().find(|submit| submit.span.is_ok())
    }

    pub(crate) fn is_pull(&self) -> bool {
        self.possible_submits().all(|submit| submit.is_pull)
    }

    pub(crate) fn store(&self) -> u8 {
        self.submits.first().map_or(0, |submit| submit.store)
    }

    /// The cancels and moves of a kind that took effect or, as their outcome is unknown, may have.
    pub(crate) fn possible_calls(
        &self,
        asked: impl Fn(CallRequest) -> bool,
    ) -> impl Iterator<Item = &CallRecord> {
        self.calls.iter().filter(move |call| call.span.may_count() && asked(call.asked))
    }

    /// Whether the job may have begun anew before a time: by a loss of the store, or as [`Self::may_be_another`] says.
    pub(crate) fn may_begin_anew(&self, until: u64) -> bool {
        self.is_forgotten(until) || self.may_be_another(until)
    }

    /// Whether the store may have lost, before a time, what had become of the job.
    pub(crate) fn is_forgotten(&self, until: u64) -> bool {
        self.lost.is_some_and(|lost| lost <= until)
    }

    /// Whether the store may have lost, before a time, what clients had been answered about the job.
    pub(crate) fn are_calls_forgotten(&self, until: u64) -> bool {
        self.lost_calls.is_some_and(|lost| lost <= until)
    }

    /// Whether the job may have been revived, purged or replaced before a time.
    pub(crate) fn may_be_another(&self, until: u64) -> bool {
        use crate::history::entry::MoveKind::{Purge, Revive};
        let mut revives = self.possible_calls(|asked| matches!(asked, CallRequest::Move(Revive | Purge)));
        revives.any(|call| call.span.sent <= until)
            || self.possible_submits().any(|submit| submit.replaces && submit.span.sent <= until)
    }

    pub(crate) fn verdict(&self, delivery: &Delivery) -> DeliveryResult {
        if delivery.end_line == crate::history::records::NONE {
            return DeliveryResult::Unknown;
        }
        if !(200..300).contains(&delivery.status) || delivery.is_cut || delivery.is_unexpected {
            return DeliveryResult::Failure;
        }
        // An attempt begins before its delivery arrives, so its deadline comes a little earlier too.
        let in_time = delivery.end - delivery.start < self.timeout / 10 * 9;
        if in_time { DeliveryResult::Success } else { DeliveryResult::Unknown }
    }

    /// When a delivery was over at the latest for the notifier: at its end or its timeout.
    pub(crate) fn end_of(&self, delivery: &Delivery) -> u64 {
        delivery.end.min(delivery.start + self.timeout)
    }

    /// When a delivery was over at the earliest for the notifier: at its end, or after a quarter of its timeout, because a
    /// busy receiver can read a request long after it was sent.
    pub(crate) fn earliest_end_of(&self, delivery: &Delivery) -> u64 {
        delivery.end.min(delivery.start + self.timeout / 4)
    }

    /// The time of the first loss between the first and the last event of the job; `None` without one. Final lines are
    /// no events.
    fn find_lost<'l>(&self, mut losses: impl Iterator<Item = &'l Loss>) -> Option<u64> {
        let begin = self.begin();
        let loss = losses.find(|loss| loss.t > begin)?;
        let is_later = |time: u64| time != NEVER && time > loss.t;
        let spans = self.submits.iter().map(|submit| submit.span);
        let spans = spans.chain(self.calls.iter().map(|call| call.span));
        let mut spans = spans.chain(self.settles.iter().map(|settle| settle.span));
        (spans.any(|span| is_later(span.sent) || is_later(span.ended))
            || self.deliveries.iter().any(|delivery| is_later(delivery.start) || is_later(delivery.end))
            || self.leases.iter().any(|lease| is_later(lease.granted))
            || self.states.iter().any(|state| is_later(state.known))
            || self.transitions.iter().any(|transition| is_later(transition.time)))
        .then_some(loss.t)
    }

    /// The time of the first submit or delivery; 0 without one.
    pub(crate) fn begin(&self) -> u64 {
        let submit = self.submits.first().map(|submit| submit.span.sent);
        let delivery = self.deliveries.first().map(|delivery| delivery.start);
        submit.into_iter().chain(delivery).min().unwrap_or_default()
    }
}

pub(crate) struct Jobs<'a> {
    tables: &'a Tables,
    next: u32,
    rest: Job<'a>,
    finals: &'a [FinalRecord],
}

impl<'a> Jobs<'a> {
    /// The jobs of `tables`, whose records must be sorted.
    pub(crate) fn new(tables: &'a Tables) -> Self {
        let rest = Job {
            name: "",
            submits: &tables.submits,
            calls: &tables.calls,
            deliveries: &tables.deliveries,
            leases: &tables.leases,
            settles: &tables.settles,
            states: &tables.states,
            transitions: &tables.transitions,
            last: None,
            timeout: 0,
            lost: None,
            lost_calls: None,
        };
        Self { tables, next: 0, rest, finals: &tables.finals }
    }
}

impl<'a> Iterator for Jobs<'a> {
    type Item = Job<'a>;

    fn next(&mut self) -> Option<Job<'a>> {
        let number = self.next;
        if number == self.tables.jobs.len() {
            return None;
        }
        self.next += 1;
        let submits = cut(&mut self.rest.submits, number);
        let timeout = submits.iter().map(|submit| submit.timeout).min();
        let mut job = Job {
            name: self.tables.jobs.name(number),
            submits,
            calls: cut(&mut self.rest.calls, number),
            deliveries: cut(&mut self.rest.deliveries, number),
            leases: cut(&mut self.rest.leases, number),
            settles: cut(&mut self.rest.settles, number),
            states: cut(&mut self.rest.states, number),
            transitions: cut(&mut self.rest.transitions, number),
            last: cut(&mut self.finals, number).last(),
            timeout: timeout.unwrap_or(self.tables.settings.timeout),
            lost: None,
            lost_calls: None,
        };
        let losses = &self.tables.run.losses;
        job.lost = job.find_lost(losses.iter());
        job.lost_calls = job.find_lost(losses.iter().filter(|loss| loss.has_calls()));
        Some(job)
    }
}

/// Removes the records of a job from the front of `records` and returns them.
fn cut<'a, R: JobRecord>(records: &mut &'a [R], job: u32) -> &'a [R] {
    let count = records.iter().take_while(|record| record.place().0 == job).count();
    let (these, rest) = records.split_at(count);
    *records = rest;
    these
}
