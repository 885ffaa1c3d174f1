//! Limits of the log by kind: at most [`MAX_LINES`] lines of one callsite in an [`INTERVAL`]. Suppressed lines are
//! counted exactly, and due to be reported when the interval ends. Pure: callers pass in the time.

use std::collections::HashMap;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use tokio::time::Instant;
use tracing::callsite::Identifier;
use tracing::{Level, Metadata};

use super::AUDIT_LOG;

/// The most lines of a callsite in an interval.
pub(super) const MAX_LINES: u32 = 10;
/// The length of an interval. It begins with a line.
pub(super) const INTERVAL: Duration = Duration::from_secs(10);

/// The limits of all callsites that have logged. Their number is bounded by the code.
#[derive(Default)]
pub(super) struct CallsiteLimits(HashMap<Identifier, Window>);

/// The decision about a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Logged,
    /// It is suppressed, and the first one since the last report.
    FirstSuppressed,
    Suppressed,
}

/// The lines of a callsite that are due to be reported.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SuppressedLines {
    pub(super) level: Level,
    pub(super) target: &'static str,
    /// The message of the first of them.
    pub(super) like: String,
    pub(super) lines: u64,
    pub(super) since: Timestamp,
    /// When to report them.
    due: Instant,
}

/// The current interval of a callsite.
struct Window {
    ends: Instant,
    logged: u32,
    /// Kept over the end of the interval until it is reported.
    suppressed: Option<SuppressedLines>,
}

impl CallsiteLimits {
    /// Whether lines of this kind are limited. Those at `debug` and `trace` are not, because somebody asked for them,
    /// and those of the audit log are not, because each is about another call.
    pub(super) fn apply_to(metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target() != AUDIT_LOG
    }

    /// Counts a line, and decides whether it is logged.
    pub(super) fn admit(
        &mut self,
        metadata: &'static Metadata<'static>,
        now: Instant,
        time: Timestamp,
    ) -> Admission {
        let new = || Window { ends: now + INTERVAL, logged: 0, suppressed: None };
        let window = self.0.entry(metadata.callsite()).or_insert_with(new);
        if now >= window.ends {
            (window.ends, window.logged) = (now + INTERVAL, 0);
        }
        if window.logged < MAX_LINES {
            window.logged += 1;
            return Admission::Logged;
        }
        if let Some(suppressed) = &mut window.suppressed {
            suppressed.lines += 1;
            return Admission::Suppressed;
        }
        window.suppressed = Some(SuppressedLines {
            level: *metadata.level(),
            target: metadata.target(),
            like: String::new(),
            lines: 1,
            since: time,
            due: window.ends,
        });
        Admission::FirstSuppressed
    }

    /// Sets the message of suppressed lines.
    pub(super) fn describe(&mut self, metadata: &Metadata<'_>, like: String) {
        let window = self.0.get_mut(&metadata.callsite());
        if let Some(suppressed) = window.and_then(|window| window.suppressed.as_mut()) {
            suppressed.like = like;
        }
    }

    /// Takes the reports that are due at `now`; all of them if that is `None`.
    pub(super) fn take_due(&mut self, now: Option<Instant>) -> Vec<SuppressedLines> {
        let is_due = |lines: &mut SuppressedLines| now.is_none_or(|now| now >= lines.due);
        self.0.values_mut().filter_map(|window| window.suppressed.take_if(is_due)).collect()
    }

    /// When the next report is due; `None` if nothing is suppressed.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.values().filter_map(|window| Some(window.suppressed.as_ref()?.due)).min()
    }
}

#[cfg(test)]
mod tests {
    use tracing::callsite::DefaultCallsite;
    use tracing::field::FieldSet;
    use tracing::metadata::Kind;

    use super::*;

    const TIME: Timestamp = Timestamp::from_millis(7);

    macro_rules! callsite {
        ($name:ident, $level:expr) => {
            callsite!($name, $level, "ringback_test");
        };
        ($name:ident, $level:expr, $target:expr) => {
            static $name: DefaultCallsite = DefaultCallsite::new({
                static METADATA: Metadata<'static> = Metadata::new(
                    "event",
                    $target,
                    $level,
                    None,
                    None,
                    None,
                    FieldSet::new(&["message"], Identifier(&$name)),
                    Kind::EVENT,
                );
                &METADATA
            });
        };
    }

    callsite!(FAILED, Level::WARN);
    callsite!(STARTED, Level::INFO);
    callsite!(FAILED_FOR_GOOD, Level::ERROR);
    callsite!(DETAIL, Level::DEBUG);
    callsite!(FINE_DETAIL, Level::TRACE);
    callsite!(CHANGED, Level::INFO, AUDIT_LOG);

    fn metadata(callsite: &'static DefaultCallsite) -> &'static Metadata<'static> {
        tracing::Callsite::metadata(callsite)
    }

    #[test]
    fn lines_beyond_the_limit_are_counted_and_due_at_the_end_of_the_interval() {
        let (mut limits, start) = (CallsiteLimits::default(), Instant::now());
        let mut admit = |now| limits.admit(metadata(&FAILED), now, TIME);
        assert!((0..10).all(|_| admit(start) == Admission::Logged));
        assert_eq!(admit(start), Admission::FirstSuppressed);
        assert!((0..46).all(|_| admit(start + INTERVAL / 2) == Admission::Suppressed));
        limits.describe(metadata(&FAILED), "it failed".to_owned());
        assert_eq!(limits.next_due(), Some(start + INTERVAL));
        assert!(limits.take_due(Some(start + INTERVAL / 2)).is_empty());
        let due = start + INTERVAL;
        let (level, target, like) = (Level::WARN, "ringback_test", "it failed".to_owned());
        let expected = SuppressedLines { level, target, like, lines: 47, since: TIME, due };
        assert_eq!(limits.take_due(Some(due)), [expected]);
        assert_eq!((limits.next_due(), limits.take_due(None)), (None, Vec::new()), "it is reported once");
    }

    #[test]
    fn the_next_interval_has_room_again_and_a_late_report_loses_no_line() {
        let (mut limits, start) = (CallsiteLimits::default(), Instant::now());
        let mut logged = 0;
        for second in 0..60 {
            for _ in 0..5 {
                let now = start + Duration::from_secs(second);
                logged += u64::from(limits.admit(metadata(&FAILED), now, TIME) == Admission::Logged);
            }
        }
        assert_eq!(logged, 6 * 10);
        let reports = limits.take_due(None);
        assert_eq!(reports.iter().map(|report| report.lines).collect::<Vec<_>>(), [300 - 60]);
        assert_eq!(reports[0].due, start + INTERVAL);
    }

    #[test]
    fn each_callsite_has_its_own_limit() {
        let (mut limits, now) = (CallsiteLimits::default(), Instant::now());
        let failed = (0..20).filter(|_| limits.admit(metadata(&FAILED), now, TIME) == Admission::Logged);
        assert_eq!(failed.count(), 10);
        assert_eq!(limits.admit(metadata(&STARTED), now, TIME), Admission::Logged);
    }

    #[test]
    fn what_somebody_asked_for_and_the_audit_log_are_not_limited() {
        let callsites = [&FAILED_FOR_GOOD, &FAILED, &STARTED, &DETAIL, &FINE_DETAIL, &CHANGED];
        let limited = callsites.map(|callsite| CallsiteLimits::apply_to(metadata(callsite)));
        assert_eq!(limited, [true, true, true, false, false, false]);
    }
}
