//! The table of the store's calls, the errors of Redis, and the expected outcome of each error at each call.

use ringback_testkit::RedisFault::{self, Close, CloseAfter, Error, Garbage, Half, Swallow};

/// Calls for which somebody waits at the API, each with what leads to it in `requests`.
pub(crate) const ANSWERED: [&str; 68] = [
    "submit",
    "replace",
    "import",
    "cancel",
    "reschedule",
    "run",
    "revive",
    "purge",
    "purge_many",
    "pull",
    "lease_info",
    "settle_receipts",
    "renew",
    "pause",
    "resume",
    "pause_destination",
    "resume_destination",
    "destinations",
    "paused_destinations",
    "put_limit",
    "mark_limit",
    "unmark_limit",
    "order_topic",
    "unorder_topic",
    "topic_order",
    "unblock",
    "limits",
    "limit_names",
    "forecast_near",
    "forecast_far",
    "put_policy",
    "delete_policy",
    "begin_bulk",
    "bulks",
    "get",
    "get_stored",
    "waits",
    "page",
    "indexed",
    "dead",
    "attempts",
    "stats",
    "topics",
    "HGET",
    "accept_loss",
    "check_shard",
    "check_jobs",
    "check_states",
    "check_tags",
    "check_lanes",
    "check_entries",
    "check_lists",
    "check_confirm",
    "check_repair",
    "check_count",
    "check_slots",
    "check_schedules",
    "unlisted_schedules",
    "list_schedule",
    "list_schedules",
    "schedules",
    "change_schedules",
    "unlist_schedule",
    "fire",
    "archive_status",
    "attach_archive",
    "read_audit_log",
    "failing",
];

/// Of these, the ones that other roles make by themselves too: carriers with a bulk operation look for jobs, and all
/// make schedules fire; archivers attach the archive; notifiers report how destinations fail.
pub(crate) const OF_OTHERS: [&str; 6] =
    ["dead", "page", "change_schedules", "fire", "attach_archive", "failing"];

/// Calls that the processes make by themselves, again and again, or that several requests share.
pub(crate) const REPEATED: [&str; 53] = [
    "members",
    "take_shard",
    "release_shard",
    "promote",
    "recover",
    "evict",
    "reserve",
    "settle",
    "exchange",
    "log_attempts",
    "outbox",
    "acknowledge",
    "take_ended",
    "remove_ended",
    "hold_feed",
    "append_audit_log",
    "change_failing",
    "add_lateness",
    "take_bulk",
    "keep_bulk",
    "end_bulk",
    "revive_many",
    "versions",
    "bulk_cancel",
    "bulk_run",
    "bulk_revive",
    "bulk_reschedule",
    "bulk_purge",
    "bulk_progress",
    "due_schedules",
    "forget_schedule_times",
    "gauges",
    "topic_gauges",
    "pull_lanes",
    "watch",
    "accepted",
    "install",
    "note_keep_done",
    "lose",
    "check_index",
    "check_due",
    "check_slot",
    "GET",
    "GETRANGE",
    "HDEL",
    "HGETALL",
    "HKEYS",
    "HMGET",
    "INFO",
    "TIME",
    "CONFIG GET",
    "SUBSCRIBE",
    "FUNCTION LOAD",
];

/// Calls that nothing here leads to, each with the reason.
pub(crate) const ELSEWHERE: [(&str, &str); 15] = [
    ("AUTH", "to find out why a connection was refused: tests of the words of a store"),
    ("take_back", "when jobs that were missing are there again: tests of lost data"),
    ("note_forgotten", "after a loss that was accepted or need not be: tests of lost data"),
    ("change_feed", "when a process has lost the lease of a feed, and by hand: tests of feeds"),
    ("grant_quota", "for tenants with quotas: tests of quotas"),
    ("admit", "for limited destinations: tests of flow control"),
    (
        "note_servers",
        "once for each start of a server, and without it a file is not rewritten: tests of torn files",
    ),
    ("BGREWRITEAOF", "as note_servers"),
    ("drop_server", "as note_servers, if the server refuses to rewrite its file"),
    ("EVAL", "the text of a script, if FUNCTION LOAD fails: its errors are those of the function"),
    ("PING", "on clusters"),
    ("CLUSTER", "on clusters: tests of moving slots"),
    ("SENTINEL", "of sentinels: tests of sentinels"),
    ("EXISTS", "a key that replicas confirm: tests of replicated stores"),
    ("FCALL", "each of the scripts"),
];

/// Calls that are made so seldom that a round does not wait long for them.
pub(crate) const SELDOM: [&str; 5] = ["exchange", "HMGET", "topic_gauges", "keep_bulk", "note_keep_done"];

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
pub(crate) enum ErrorEffect {
    /// The API answers 503, with a `detail` that says whether the outcome is known; the same request then succeeds.
    Unavailable,
    /// The call is made again at once, so the caller sees no error.
    Served,
    /// One of the two: by whether the store has answered the same request before, or has a newer answer.
    Either,
    /// The role makes the call again later; the process goes on and stays or becomes ready.
    Repeated,
}

/// Calls that carry a token, so that the API makes them once more at once after a broken connection and the like.
const WITH_TOKEN: [&str; 4] = ["reschedule", "run", "revive", "begin_bulk"];

/// The expected outcome of an error at a call.
pub(crate) fn outcome(call: &str, fault: RedisFault) -> ErrorEffect {
    match fault {
        _ if REPEATED.contains(&call) => ErrorEffect::Repeated,
        // Plain commands need no library.
        Error(NOT_FOUND) if call.bytes().all(|byte| byte.is_ascii_uppercase()) => ErrorEffect::Unavailable,
        // The library is loaded again.
        Error(NOT_FOUND) => ErrorEffect::Served,
        _ if call.starts_with("check_") || call == "unlisted_schedules" => ErrorEffect::Either,
        // A repetition would fail again.
        Error(line) if ["OOM", "READONLY", "NOAUTH", "NOPERM"].iter().any(|code| line.starts_with(code)) => {
            ErrorEffect::Unavailable
        }
        Error(_) | Close | CloseAfter | Garbage | Half if WITH_TOKEN.contains(&call) => ErrorEffect::Served,
        Error(_) | Swallow | Close | CloseAfter | Garbage | Half => ErrorEffect::Unavailable,
    }
}
