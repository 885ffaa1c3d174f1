//! The run itself: clocks, bounds, faults, processes and measurements.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The clocks and the bounds of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start<'a> {
    pub t: u64,
    /// The wall clock of the host at `t` = 0, in microseconds since 1970.
    pub wall: u64,
    /// What ran, with its seed.
    #[serde(default, borrow)]
    pub name: Cow<'a, str>,
    /// How far clocks may disagree, in microseconds.
    #[serde(default = "default_epsilon")]
    pub epsilon: u64,
    /// How long after its due time or the end of a fault a job is delivered at the latest, in microseconds: the
    /// lock's TTL, a lease and a tick. Without it such times are not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<u64>,
    /// The deadline of an attempt in milliseconds.
    #[serde(default = "default_timeout")]
    pub timeout: u32,
    /// The number of the retry policy of jobs that bring none.
    #[serde(default)]
    pub policy: u32,
    /// The store may lose what it accepted in this time before one of its faults, in microseconds.
    #[serde(default)]
    pub loss: u64,
}

const fn default_epsilon() -> u64 {
    2_000
}

const fn default_timeout() -> u32 {
    10_000
}

/// A retry policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub p: u32,
    /// The tiers in milliseconds.
    pub delays: Vec<u64>,
    /// After how many failures a job is dead; 0 is never.
    pub max: u32,
    /// The share of a tier that is added at random.
    pub jitter: f64,
}

/// A topic whose lateness is compared with that of a run of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant<'a> {
    pub topic: &'a str,
    /// The 99th percentile of its lateness when it ran alone, in microseconds.
    pub alone: u64,
}

/// A bound of what is sampled.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit<'a> {
    pub name: &'a str,
    /// The largest value.
    pub most: u64,
    /// By how many percent the last value may exceed the first; absent if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leak: Option<u64>,
}

/// A planted secret, or what all of them have in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary<'a> {
    /// The text, of at least eight characters.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// How far the store's clock is ahead of the host's wall clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockReading {
    /// When it was read.
    pub t: u64,
    #[serde(default)]
    pub store: u8,
    /// By how much it is ahead, in microseconds.
    pub ahead: i64,
    /// By how much this can be wrong, in microseconds.
    pub error: u64,
}

/// What a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    Process,
    /// The store, which goes on accepting writes.
    Store,
    /// The store, which accepts no writes until the fault ends.
    StoreDown,
    /// The store has lost data, and nobody has agreed to that yet.
    Amnesia,
    /// The store, of which two servers take writes until one of them gives its own up.
    Split,
    Network,
    Receiver,
}

impl FaultClass {
    /// Whether faults of this class hit the store.
    pub(crate) const fn is_store(self) -> bool {
        matches!(self, Self::Store | Self::StoreDown | Self::Amnesia | Self::Split)
    }
}

/// A fault begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault<'a> {
    /// When, not after its first effect.
    pub t: u64,
    pub f: u64,
    /// What it is, such as `kill-notifier`.
    pub kind: &'a str,
    pub class: FaultClass,
    /// The process that it hits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// A fault ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Healed {
    /// When, not before its last effect; a process that was killed has been started again.
    pub t: u64,
    /// The number of the fault.
    pub f: u64,
}

/// The store goes on without some of what it had: its data were removed, or are older.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// When the store was away, and all that it has later comes after this.
    pub t: u64,
    /// What clients were answered before this time is there. If it is `t`, all of that is there, and only attempts and
    /// their outcomes may not be.
    pub since: u64,
    /// When it answered again with what it had left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<u64>,
}

impl Loss {
    /// Whether answers to clients may be lost too, not only attempts and their outcomes.
    pub(crate) const fn has_calls(&self) -> bool {
        self.since < self.t
    }
}

/// A process was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proc<'a> {
    pub t: u64,
    /// Its process id.
    pub pid: u32,
    /// What it is, such as `notifier`.
    pub role: &'a str,
}

/// A process ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// When this was noticed.
    pub t: u64,
    /// Its process id.
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine<'a> {
    /// When it was read or written.
    pub t: u64,
    /// The process that wrote it.
    pub pid: u32,
    /// `panic` or `error`.
    pub level: LogLevel,
    /// The class of a known error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<&'a str>,
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// How bad a line of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    Panic,
    Error,
}

/// A value that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample<'a> {
    pub t: u64,
    /// The process or server.
    pub of: &'a str,
    /// What was measured, such as `rss_kib`.
    pub name: &'a str,
    pub value: u64,
}

/// A process noticed that its store lost data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alarm {
    pub t: u64,
    pub pid: u32,
}

/// What stood still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StallOf {
    /// The machine: a thread that sleeps for moments only woke up late.
    #[default]
    Machine,
    /// The store: it did not answer this program, which is connected to it without a proxy.
    Store,
}

/// The machine or the store stood still.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// When it went on, or was given up.
    pub t: u64,
    /// When the thread was to wake up, or when the store was asked.
    pub since: u64,
    #[serde(default)]
    pub of: StallOf,
}

/// Logs, metrics and answers were searched for secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    pub t: u64,
    /// How many bytes were searched.
    pub bytes: u64,
    /// How many secrets were found.
    pub found: u64,
}
