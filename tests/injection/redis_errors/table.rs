//! The calls, the errors, and the outcome of each error at each call.

use ringback_testkit::RedisFault::{self, Close, CloseAfter, Error, Garbage, Half, Swallow};

/// Calls for which somebody waits at the API.
pub(crate) const ANSWERED: [&str; 10] =
    ["submit", "replace", "cancel", "reschedule", "run", "get", "page", "pull", "settle_receipts", "renew"];

/// Calls that carriers and notifiers make by themselves, again and again.
pub(crate) const REPEATED: [&str; 7] =
    ["members", "promote", "recover", "reserve", "settle", "exchange", "note"];

/// A settle and a reserve in one call, which a notifier makes only if both are due at the same moment.
pub(crate) const SELDOM: &str = "exchange";

/// The errors, by name.
pub(crate) const FAULTS: [(&str, RedisFault); 21] = [
    ("LOADING", Error("LOADING Redis is loading the dataset in memory")),
    ("BUSY", Error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")),
    ("OOM", Error("OOM command not allowed when used memory > 'maxmemory'.")),
    ("MISCONF", Error("MISCONF Errors writing to the AOF file: No space left on device")),
    ("READONLY", Error("READONLY You can't write against a read only replica.")),
    ("MASTERDOWN", Error("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")),
    ("CLUSTERDOWN", Error("CLUSTERDOWN The cluster is down")),
    ("MOVED", Error("MOVED 3999 127.0.0.1:1")),
    ("ASK", Error("ASK 3999 127.0.0.1:1")),
    ("TRYAGAIN", Error("TRYAGAIN Multiple keys request during rehashing of slot")),
    ("NOREPLICAS", Error("NOREPLICAS Not enough good replicas to write.")),
    ("NOAUTH", Error("NOAUTH Authentication required.")),
    ("NOPERM", Error("NOPERM User default has no permissions to run the 'fcall' command")),
    ("NOSCRIPT", Error(NOT_FOUND)),
    ("EXECABORT", Error("EXECABORT Transaction discarded because of previous errors.")),
    ("WRONGTYPE", Error("WRONGTYPE Operation against a key holding the wrong kind of value")),
    ("timeout", Swallow),
    ("EOF before the call", Close),
    ("EOF after the call", CloseAfter),
    ("garbage", Garbage),
    ("half an answer", Half),
];

const NOT_FOUND: &str = "ERR Function not found";

/// What comes of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The API answers 503, with a `detail` that says whether the outcome is known; the same request then succeeds.
    Unavailable,
    /// The call is made again at once, so nobody notices.
    Served,
    /// The role makes the call again later; the process goes on and stays or becomes ready.
    Repeated,
}

/// Calls that carry a token, so that the API makes them once more at once after a broken connection and the like.
const WITH_TOKEN: [&str; 2] = ["reschedule", "run"];

/// The outcome of an error at a call.
pub(crate) fn outcome(call: &str, fault: RedisFault) -> Outcome {
    match fault {
        _ if REPEATED.contains(&call) => Outcome::Repeated,
        // The library is loaded again.
        Error(NOT_FOUND) => Outcome::Served,
        // Would fail again.
        Error(line) if ["OOM", "READONLY", "NOAUTH", "NOPERM"].iter().any(|code| line.starts_with(code)) => {
            Outcome::Unavailable
        }
        Error(_) | Close | CloseAfter | Garbage | Half if WITH_TOKEN.contains(&call) => Outcome::Served,
        Error(_) | Swallow | Close | CloseAfter | Garbage | Half => Outcome::Unavailable,
    }
}
