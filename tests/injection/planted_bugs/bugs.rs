//! The list of planted bugs: where each is planted, the run in which it shows, and the invariants of which it violates
//! at least one; the first is the one it is about.

use std::ops::Range;
use std::time::Duration;

use Invariant::{
    AttemptNumbers, ContentUnchanged, CountsAgree, DeadWithReason, DurableAccept, Fencing, LatenessKnown,
    Liveness, LossNoticed, NoSecondJob, NoUnexplainedRepeat, NotAfterCancel, NotEarly, NothingLost, OneLease,
    OnlySuccessCompletes, RecordsIndexed, RetryTimes, StaleReceipts, WebhookHeaders,
};
use ringback_testkit::history::Invariant;
use ringback_testkit::{HttpChanges, HttpMessage};

use super::Scenario::{self, Calm, Disturbed};

#[derive(Clone, Copy)]
pub(crate) struct Bug {
    pub(crate) name: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) violates: &'static [Invariant],
    pub(crate) place: Place,
}

/// Where a bug is.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// In the scripts: texts, and what stands in their place.
    Scripts(&'static [(&'static str, &'static str)]),
    /// Between notifiers and receivers.
    Callbacks(HttpChanges),
    /// Between callers and the API.
    Submits(HttpChanges),
    /// In the retry delays of the processes, which are not those that callers know of.
    Retry(&'static str),
    /// In the processes, which cannot load the library again once it is gone.
    NotLoadedAgain,
}

/// Declares bugs of scripts, of notifiers as receivers see them, of the API as callers see it, and others.
macro_rules! bugs {
    (
        scripts { $($name:literal $run:ident [$($violates:ident)+] $($right:expr => $wrong:expr),+;)* }
        callbacks { $($callback:literal [$($broken:ident)+] $($field:ident: $value:expr),+;)* }
        submits { $($submit:literal $in:ident [$($wrongs:ident)+] $change:ident: $changed:expr;)* }
        others { $($other:literal $during:ident [$($rules:ident)+] $place:expr;)* }
    ) => {
        pub(crate) const BUGS: &[Bug] = &[
            $(Bug { name: $name, scenario: $run, violates: &[$($violates),+],
                place: Place::Scripts(&[$(($right, $wrong)),+]) },)*
            $(Bug { name: $callback, scenario: Calm, violates: &[$($broken),+],
                place: Place::Callbacks(HttpChanges { $($field: $value,)+ ..HttpChanges::NONE }) },)*
            $(Bug { name: $submit, scenario: $in, violates: &[$($wrongs),+],
                place: Place::Submits(HttpChanges { $change: $changed, ..HttpChanges::NONE }) },)*
            $(Bug { name: $other, scenario: $during, violates: &[$($rules),+], place: $place },)*
        ];
    };
}

// Texts that several bugs replace.
const DUE: &str = "return at > 0 and NOW_UP + at or NOW";
const TAKEN: &str = "if records[loc] or tombstones[loc] then return arrivals.taken(loc, rest) end";
const RETRY_AT: &str = "local at = NOW_UP + outcomes.delay(o)";
const WAITER: &str = "if lane or not find_due(scheduled, scheduled_row) then return false end";
const NOT_COMMON: &str = "do return false end";
const REGISTERS: &str = "fields.waiter, fields.waits_until = number, NOW + LASTS";
const NOBODY_WAITS: &str = "fields.waiter, fields.waits_until = number, 0";
const PUSH: &str = "ready.push(lane, entries, 'RPUSH')";
const PUSH_COMMON: &str = "ready.push(lane, found, 'RPUSH')";

/// Less than the shortest timeout of an attempt.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

fn replace(answer: &mut Option<HttpMessage>, statuses: Range<u16>, by: u16) {
    if answer.as_ref().is_some_and(|answer| statuses.contains(&answer.status())) {
        *answer = Some(HttpMessage::answer(by));
    }
}

/// Puts an answer 200 in the place of a missing answer.
fn accept(answer: &mut Option<HttpMessage>) {
    answer.get_or_insert_with(|| HttpMessage::answer(200));
}

fn id_of_attempt(request: &mut HttpMessage) {
    let id = format!("msg_{}", request.header("ringback-attempt").unwrap_or_default());
    request.set("webhook-id", &id);
}

fn stamp_in_milliseconds(request: &mut HttpMessage) {
    let stamp = format!("{}000", request.header("webhook-timestamp").unwrap_or_default());
    request.set("webhook-timestamp", &stamp);
}

fn ignore_first_success(request: &HttpMessage, answer: &mut Option<HttpMessage>) {
    if request.header("ringback-attempt") == Some("1") {
        replace(answer, 200..201, 500);
    }
}

bugs! {
    scripts {
        "accepted-not-counted" Calm [CountsAgree] "shard.count('accepted', n)" => "shard.count('accepted', n - 1)",
            "= fields.accepted + n," => "= fields.accepted + n - 1,";
        "cancel-changes-nothing" Calm [NotAfterCancel] "  cancel(loc, raw, s, lane, from)" =>
            "  if from then return {CANCELLED, maybe_in_flight} end";
        "cancel-ignores-reserved" Calm [NotAfterCancel] "jobs.put(loc, state.with_cancel(s))" => "";
        "cancel-request-forgotten" Calm [NotAfterCancel] "    elseif state.is_cancel_requested(s) then\n      ends(loc" =>
            "    elseif false then\n      ends(loc";
        "conflict-is-repetition" Calm [NoSecondJob] "local status = record.hash(raw) == hash and 200 or 409" =>
            "local status = 200";
        "counted-again-when-repeated" Disturbed [CountsAgree] "answer = known and tombs.lease(known) == lease and REPLAYED" =>
            "answer = known and tombs.lease(known) == lease and (shard.count('done', 1) or REPLAYED)";
        "dead-letter-not-indexed" Calm [RecordsIndexed]
            "    elseif kind == BURY then\n      dead[#dead + 1] = dead_letters.entry(loc, lane)" =>
            "    elseif kind == BURY then";
        "delay-ignored" Calm [NotEarly] DUE => "return NOW";
        // Like a process whose clock is behind.
        "due-by-another-clock" Calm [NotEarly] DUE => "return at > 0 and NOW_UP - 300 + at or NOW - 300";
        "due-truncated-to-seconds" Calm [NotEarly] DUE =>
            "return at > 0 and math.floor((NOW_UP + at) / 1000) * 1000 or NOW";
        // An empty store takes on the id that its callers know, and no process sees that its count is too small. A larger
        // count is true: processes remember it while the library is without the bug.
        "empty-store-accepted" Disturbed [LossNoticed]
            "id = unique()" => "id = args[3] ~= '' and args[3] or unique()",
            "if fields.accepted < known_accepted then" => "if false then",
            "return {fields.accepted, run_id()}" =>
            "return {fields.accepted > 5 and fields.accepted or 9000000000, run_id()}";
        "expired-lease-kept" Calm [Liveness] "if at <= NOW and #over < limit then" => "if limit < 0 then";
        "failures-counted-twice" Calm [DeadWithReason]
            "goes_on_later(loc, state.with_failure(s, sub(o, 9)), o, lane, lease)" =>
            "goes_on_later(loc, state.with_failure(state.with_failure(s, sub(o, 9)), sub(o, 9)), o, lane, lease)";
        "fence-from-a-lost-counter" Disturbed [Fencing] "max(fields.epoch + 1, NOW_US)" => "fields.epoch + 1";
        // Without a waiter, so that a carrier promotes what is due.
        "fence-not-compared" Disturbed [Fencing] "return fields.epoch ~= tonumber(epoch)" => "return false",
            REGISTERS => NOBODY_WAITS;
        // Like a check for the job in an earlier call.
        "idempotency-not-atomic" Calm [NoSecondJob] TAKEN =>
            "local known = records[loc] and read('>I6', records[loc], 7) + 50 <= NOW or tombstones[loc]
             if known then return arrivals.taken(loc, rest) end";
        "lease-is-timeout" Calm [RetryTimes OneLease AttemptNumbers DeadWithReason]
            "timeout, longest) + margin" => "timeout, longest)";
        "lease-too-short" Calm [OneLease NoUnexplainedRepeat RetryTimes CountsAgree] "local deadline = NOW_UP + length" =>
            "local deadline = NOW_UP + 50", "deadline = NOW_UP + length_of(timeout)" => "deadline = NOW_UP + 50";
        // The jitter of a delay of 400 ms, which is added by the process.
        "no-jitter" Calm [RetryTimes] RETRY_AT =>
            "local wait = outcomes.delay(o)
             local at = NOW_UP + (wait > 400 and wait <= 800 and 400 or wait)";
        "popped-and-not-pushed" Calm [NothingLost RecordsIndexed] PUSH => "if n > 1 then ready.push(lane, entries, 'RPUSH') end",
            PUSH_COMMON => "if n > 1 then ready.push(lane, found, 'RPUSH') end", WAITER => NOT_COMMON;
        "promoted-early" Calm [NotEarly] "return fields.slot > 0 and min(NOW, fields.slot * WIDTH - 1) or NOW end" =>
            "return NOW + 150 end", "tonumber(args[2]), NOW)" => "tonumber(args[2]), NOW + 150)",
            "due.first(lane, most, NOW)" => "due.first(lane, most, NOW + 150)";
        "released-is-done" Calm [NothingLost] "    if kind == COMPLETE then\n      ends(loc" =>
            "    if kind == COMPLETE or kind == 4 then\n      ends(loc";
        "renewal-forgotten" Calm [OneLease] "jobs.put(loc, state.with_deadline(s, deadline))\n  jobs.save()" => "";
        "repeated-submit-makes-a-job" Calm [NoSecondJob] TAKEN => "";
        "retries-at-one-time" Calm [RetryTimes] RETRY_AT => "local at = ceil((NOW_UP + outcomes.delay(o)) / 500) * 500";
        "retry-at-once" Calm [RetryTimes] RETRY_AT => "local at = NOW_UP";
        "retry-not-scheduled" Calm [RecordsIndexed]
            "    due_index.add(lane, at, due_index.entry(loc, six(at)))\n    goes_on(" => "    goes_on(";
        "stale-receipt-accepted" Calm [StaleReceipts] "if state.code(s) ~= RESERVED or state.receipt(s) ~= held then" =>
            "if state.code(s) ~= RESERVED then";
        // The second half of the move is made in the next call of the same carrier.
        "two-call-move" Disturbed [NothingLost RecordsIndexed Liveness]
            PUSH => "ready.taken[#ready.taken + 1] = {lane, entries}",
            // The common case is moved as all others.
            "if is_due and (#scheduled > 2" => "if true or (#scheduled > 2",
            WAITER => NOT_COMMON,
            "local limit = tonumber(args[2])" =>
            "local limit = tonumber(args[2])
             for _, taken in ipairs(ready.taken_by == args[1] and ready.taken or {}) do
               ready.push(taken[1], taken[2], 'RPUSH')
             end
             ready.taken, ready.taken_by = {}, args[1]";
    }
    callbacks {
        "acknowledged-before-post" [NothingLost] instead: Some(200);
        "attempt-not-raised" [Fencing] request: |request| request.set("ringback-attempt", "1");
        "body-serialised-again" [ContentUnchanged] request: |request| request.body.retain(|byte| *byte != b' ');
        "broken-is-success" [OnlySuccessCompletes] answer: |_, answer| accept(answer);
        "client-error-is-gone" [DeadWithReason] answer: |_, answer| replace(answer, 400..500, 410);
        "connection-kept-after-extra-bytes" [OnlySuccessCompletes] keeps_extra_bytes: true;
        "due-time-missing" [LatenessKnown] request: |request| request.remove("ringback-due-at");
        "query-cut-off" [ContentUnchanged] request: |request| request.first_line = request.first_line.replace("?x=1", "");
        "redirect-is-success" [OnlySuccessCompletes] answer: |_, answer| replace(answer, 300..400, 200);
        "retry-after-ignored" [RetryTimes] answer: |_, answer| answer.iter_mut().for_each(|answer| answer.remove("retry-after"));
        "success-is-failure" [NoUnexplainedRepeat] answer: ignore_first_success;
        "timeout-is-success" [OnlySuccessCompletes] answer: |_, answer| accept(answer), timeout: ANSWER_TIMEOUT;
        "webhook-id-per-attempt" [WebhookHeaders] request: id_of_attempt;
        "webhook-timestamp-in-milliseconds" [WebhookHeaders] request: stamp_in_milliseconds;
    }
    submits {
        "dropped-when-memory-is-full" Disturbed [NothingLost DurableAccept] answer: |_, answer| replace(answer, 500..600, 201);
        "idempotency-key-ignored" Calm [NoSecondJob] request: |request| request.remove("idempotency-key");
    }
    others {
        "library-not-loaded-again" Disturbed [Liveness] Place::NotLoadedAgain;
        "one-retry-too-few" Calm [DeadWithReason] Place::Retry("100ms");
        "one-retry-too-many" Calm [AttemptNumbers] Place::Retry("100ms 200ms 200ms");
    }
}
