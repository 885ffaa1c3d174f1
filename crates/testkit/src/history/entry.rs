//! The lines of a history: one JSON object each, with one member whose name says what the line is.
//!
//! Times named `t` are microseconds of the monotonic clock of the host that writes the history, since its start.
//! Due times, deadlines and other times of the store are milliseconds since 1970 by the store's clock. Texts are
//! borrowed from the line; names and URLs must not need escapes in JSON.

mod account;
mod calls;
mod receiver;
mod run;

use serde::{Deserialize, Serialize};

pub use self::account::{Check, End, Final, JobState, Ledger, LockUse, Metric, Observed, Transition};
pub use self::calls::{
    Answered, Call, Lease, MoveCall, MoveKind, NotAnswered, Rejected, Reserve, Settle, SettleKind, Submit,
};
pub use self::receiver::{Arrive, Respond};
pub use self::run::{
    Alarm, Canary, ClockReading, Exit, Fault, FaultClass, Healed, Limit, LogLevel, LogLine, Loss, Policy,
    Proc, Sample, Scan, Stall, StallOf, Start, Tenant,
};

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry<'a> {
    /// The first line: the clocks and the bounds of the run.
    Start(#[serde(borrow)] Start<'a>),
    /// A retry policy, which later lines name by its number.
    Policy(Policy),
    /// A topic whose lateness is compared with that of a run of its own.
    Tenant(#[serde(borrow)] Tenant<'a>),
    /// A bound of what is sampled.
    Limit(#[serde(borrow)] Limit<'a>),
    /// A planted secret, or the part that all of them have in common. It must not be in any other line.
    Canary(#[serde(borrow)] Canary<'a>),
    /// How far the store's clock is ahead.
    Clock(ClockReading),

    /// A client asks to submit a job.
    Submit(#[serde(borrow)] Submit<'a>),
    /// A client asks to cancel a job.
    Cancel(#[serde(borrow)] Call<'a>),
    /// A client asks to move a job: reschedule, run, revive or purge.
    Move(#[serde(borrow)] MoveCall<'a>),
    /// A consumer asks for jobs.
    Reserve(Reserve),
    /// A consumer settles or renews.
    Settle(#[serde(borrow)] Settle<'a>),
    /// A call succeeded.
    Ok(#[serde(borrow)] Answered<'a>),
    /// A call was refused, and changed nothing.
    Fail(Rejected),
    /// The outcome of a call is unknown.
    Info(NotAnswered),
    /// A reserve was answered with this job.
    Lease(#[serde(borrow)] Lease<'a>),

    /// The head of a delivery is complete.
    Arrive(#[serde(borrow)] Arrive<'a>),
    /// A delivery has ended.
    Respond(Respond),

    /// A state that a job was seen in.
    State(#[serde(borrow)] Observed<'a>),
    /// A transition that a process has logged.
    Transition(#[serde(borrow)] Transition<'a>),
    /// A process took a lock.
    Claim(#[serde(borrow)] LockUse<'a>),
    /// A process had an effect under a lock.
    Effect(#[serde(borrow)] LockUse<'a>),

    /// A fault begins.
    Fault(#[serde(borrow)] Fault<'a>),
    /// A fault ends.
    Healed(Healed),
    /// The store comes back without some of what it had.
    Loss(Loss),
    /// A process was started.
    Proc(#[serde(borrow)] Proc<'a>),
    /// A process ended.
    Exit(Exit),
    /// A line of a log that says `panicked` or has the level ERROR.
    Log(#[serde(borrow)] LogLine<'a>),
    /// A value that was measured.
    Sample(#[serde(borrow)] Sample<'a>),
    /// A process noticed that its store lost data.
    Alarm(Alarm),
    /// The machine or the store stood still.
    Stall(Stall),

    /// Logs, metrics and answers were searched for secrets.
    Scan(Scan),
    /// A job at the end, by the export, the list of dead jobs or a look at it.
    Final(#[serde(borrow)] Final<'a>),
    /// The answer of a check at the end.
    Check(Check),
    /// The counts of the store at the end.
    Ledger(Ledger),
    /// A counter of one process at the end.
    Metric(#[serde(borrow)] Metric<'a>),
    /// The last line.
    End(End),
}

const fn is_false(flag: &bool) -> bool {
    !*flag
}

const fn is_zero(number: &u8) -> bool {
    *number == 0
}

const fn one() -> u32 {
    1
}

const fn is_one(number: &u32) -> bool {
    *number == 1
}
