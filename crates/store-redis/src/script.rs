//! The list of all Lua scripts, and the function library of Redis that they form. The library begins with the pieces of
//! `prelude`. Each piece owns one part of the layout, such as records, the due index or ready queues. Redis runs the
//! pieces once, at the first call.
//!
//! If the library cannot be loaded because memory is full, the same text runs as a script, which is slower.

use std::sync::LazyLock;

use redis::{Arg, Cmd, ToRedisArgs};
use ringback_core::hex::Hex;
use sha2::{Digest as _, Sha256};

/// Whether a script may run when memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The script adds data: it is refused before it writes.
    Fills,
    /// The script runs, because it makes room or adds little.
    Drains,
    /// The script writes nothing.
    Reads,
}

impl Kind {
    /// Returns the flag of Redis for scripts of this kind; `None` for no flag.
    const fn flag(self) -> Option<&'static str> {
        match self {
            Self::Fills => None,
            Self::Drains => Some("allow-oom"),
            Self::Reads => Some("no-writes"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    /// The answer of the script.
    Plain,
    /// The answer and the transitions of the call, for the log.
    WithTransitions,
}

/// A script, with the name of its call.
#[derive(Debug)]
pub(crate) struct Script {
    name: &'static str,
    kind: Kind,
    /// Whether the script makes transitions of jobs, so that it can return them too.
    takes_transitions: bool,
}

impl Script {
    /// Returns the name of the call, which also names its answer in errors.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) const fn takes_transitions(&self) -> bool {
        self.takes_transitions
    }

    /// Returns a call of the library's function without arguments yet. The function uses the first key only.
    pub(crate) fn as_function<K: ToRedisArgs>(&self, keys: &[K], returns: Returns) -> Cmd {
        let mut cmd = redis::cmd("FCALL");
        let name = match returns {
            Returns::Plain => format!("{}_{}", LIBRARY.name, self.name),
            Returns::WithTransitions => format!("{}_{}{LOGGED}", LIBRARY.name, self.name),
        };
        cmd.arg(name).arg(keys.len()).arg(keys);
        cmd
    }

    /// Returns a call of EVAL that does the same as the call `function`, with the text of all scripts.
    pub(crate) fn as_text(&self, function: &Cmd, returns: Returns) -> Cmd {
        let flags = self.kind.flag().map_or_else(String::new, |flag| format!(" flags={flag}"));
        let is_logged = returns == Returns::WithTransitions;
        let source = format!(
            "#!lua{flags}\n{}\nreturn init()('{}', KEYS[1], ARGV, {is_logged})",
            LIBRARY.init, self.name
        );
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(source);
        // After the command and the name of the function.
        for arg in function.args_iter().skip(2) {
            if let Arg::Simple(arg) = arg {
                cmd.arg(arg);
            }
        }
        cmd
    }
}

/// The text of all scripts.
struct Library {
    /// The name, with a digest of the text, so that processes of two versions do not replace each other's library.
    name: String,
    /// The Lua function `init`, which runs the pieces and returns the function that calls a script.
    init: String,
}

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    // Locals of a file stay inside its block, because Lua allows only 200 in a function.
    let bodies: String = FILES.iter().map(|file| format!("do\n{file}\nend\n")).collect();
    let init = format!(
        "local function init()\nlocal scripts = {{}}\n{}\n{bodies}\n\
         return function(name, base, args, is_logged)\nenter(base)\n\
         local path = not is_logged and not is_uncommon[base] and fast[name]\n\
         local quick = path and path(args)\nif quick then return quick end\nstart(name, is_logged)\n\
         local is_done, answer = pcall(scripts[name], args)\n\
         if not is_done then\nshard.fail()\nraise(answer)\nend\n\
         if is_logged then return {{answer, events.logged()}} end\nreturn answer\nend\nend",
        PIECES.concat()
    );
    let digest = Sha256::digest(&init);
    Library { name: format!("ringback_{}", Hex(&digest[..4])), init }
});

/// Returns the command that loads the library. Loading it again does no harm.
pub(crate) fn load() -> Cmd {
    let Library { name, init } = &*LIBRARY;
    // A library cannot use Redis's API while it loads, so the first call runs the pieces.
    let mut source = format!("#!lua name={name}\n{init}\nlocal run\n");
    let mut register = |script: &str, end: &str, kind: Kind, is_logged: bool| {
        let flags = kind.flag().map_or_else(String::new, |flag| format!("'{flag}'"));
        source.push_str(&format!(
            "redis.register_function{{function_name='{name}_{script}{end}', flags={{{flags}}}, \
             callback=function(keys, args) run = run or init() \
             return run('{script}', keys[1], args, {is_logged}) end}}\n"
        ));
    };
    for script in ALL {
        register(script.name, "", script.kind, false);
        if script.takes_transitions() {
            register(script.name, LOGGED, script.kind, true);
        }
    }
    let mut cmd = redis::cmd("FUNCTION");
    cmd.arg("LOAD").arg("REPLACE").arg(source);
    cmd
}

macro_rules! files {
    ($($file:literal)*) => { &[$(include_str!(concat!($file, ".lua"))),*] };
}

/// The pieces of the prelude, each after those that it uses.
const PIECES: &[&str] = files! {
    "prelude/base" "prelude/shard" "prelude/lanes" "prelude/records" "prelude/due_index"
    "prelude/ready" "prelude/due" "prelude/waiter" "prelude/oldest" "prelude/leases" "prelude/dead_letters" "prelude/outbox" "prelude/archive" "prelude/tombs"
    "prelude/lateness"
    "prelude/topics" "prelude/tag_index" "prelude/destinations" "prelude/paused_lanes" "prelude/arrivals" "prelude/order" "prelude/grants" "prelude/outcomes" "prelude/events" "prelude/moves"
    "prelude/bulks" "prelude/attempt_logs" "prelude/recurring" "prelude/carrier" "prelude/check" "prelude/start"
};

const FILES: &[&str] = files! {
    "transitions/submit" "transitions/replace" "transitions/import" "transitions/cancel" "transitions/moves" "transitions/purge" "transitions/bulk"
    "transitions/promote" "transitions/reserve" "transitions/pull" "transitions/renew" "transitions/settle" "transitions/settle_receipts"
    "transitions/recover" "transitions/evict" "shard/take_shard" "shard/pauses" "shard/order" "shard/lateness" "shard/log_attempts" "shard/watch"
    "transitions/schedules" "shard/archive"
    "queries/job" "queries/page" "queries/dead" "shard/outbox" "queries/stats" "queries/topics"
    "queries/destinations" "queries/forecast"
    "queries/gauges"
    "installation/install" "installation/rewrite_aof" "installation/members" "installation/policies" "installation/bulks"
    "installation/grant_quota" "installation/admission" "installation/schedules" "installation/feeds" "installation/audit_log" "installation/failing"
    "check/counts" "check/jobs" "check/lanes" "check/lists" "check/repair" "check/due" "check/schedules"
};

/// The end of the names of functions that also return their transitions.
const LOGGED: &str = "_logged";

/// Each script: its name, whether it may run when memory is full, and `moves` if it makes transitions of jobs.
macro_rules! scripts {
    ($($name:ident: $call:literal, $kind:ident $(, $moves:ident)?;)*) => {
        $(pub(crate) static $name: Script = Script {
            name: $call,
            kind: Kind::$kind,
            takes_transitions: !stringify!($($moves)?).is_empty(),
        };)*
        const ALL: &[&Script] = &[$(&$name),*];
    };
}

scripts! {
    SUBMIT: "submit", Fills, moves;
    REPLACE: "replace", Fills, moves;
    IMPORT: "import", Fills, moves;
    CANCEL: "cancel", Drains, moves;
    RESCHEDULE: "reschedule", Fills, moves;
    RUN: "run", Drains, moves;
    REVIVE: "revive", Fills, moves;
    PURGE: "purge", Drains, moves;
    PURGE_MANY: "purge_many", Drains, moves;
    REVIVE_MANY: "revive_many", Fills, moves;
    BULK_PROGRESS: "bulk_progress", Drains;
    VERSIONS: "versions", Reads;
    BULK_CANCEL: "bulk_cancel", Drains, moves;
    BULK_RUN: "bulk_run", Drains, moves;
    BULK_REVIVE: "bulk_revive", Fills, moves;
    BULK_RESCHEDULE: "bulk_reschedule", Fills, moves;
    BULK_PURGE: "bulk_purge", Drains, moves;
    PROMOTE: "promote", Drains, moves;
    RESERVE: "reserve", Drains, moves;
    PULL: "pull", Drains, moves;
    RENEW: "renew", Drains, moves;
    SETTLE: "settle", Drains, moves;
    EXCHANGE: "exchange", Drains, moves;
    SETTLE_RECEIPTS: "settle_receipts", Drains, moves;
    RECOVER: "recover", Drains, moves;
    EVICT: "evict", Drains, moves;
    ACKNOWLEDGE: "acknowledge", Drains;
    TAKE_SHARD: "take_shard", Drains;
    RELEASE_SHARD: "release_shard", Drains;
    PAUSE: "pause", Drains;
    RESUME: "resume", Drains;
    PAUSE_DESTINATION: "pause_destination", Drains;
    RESUME_DESTINATION: "resume_destination", Drains;
    MARK_LIMIT: "mark_limit", Drains;
    UNMARK_LIMIT: "unmark_limit", Drains;
    ORDER_TOPIC: "order_topic", Drains;
    UNORDER_TOPIC: "unorder_topic", Drains;
    TOPIC_ORDER: "topic_order", Reads;
    UNBLOCK: "unblock", Drains;
    LOG_ATTEMPTS: "log_attempts", Fills;
    ADD_LATENESS: "add_lateness", Drains;
    WATCH: "watch", Drains;
    CHANGE_SCHEDULES: "change_schedules", Drains;
    FIRE: "fire", Fills, moves;
    FORGET_SCHEDULE_TIMES: "forget_schedule_times", Drains;
    ATTACH_ARCHIVE: "attach_archive", Drains;
    TAKE_ENDED: "take_ended", Drains;
    REMOVE_ENDED: "remove_ended", Drains;
    ARCHIVE_STATUS: "archive_status", Reads;
    DUE_SCHEDULES: "due_schedules", Reads;
    SCHEDULES: "schedules", Reads;
    LIST_SCHEDULE: "list_schedule", Fills;
    UNLIST_SCHEDULE: "unlist_schedule", Drains;
    LIST_SCHEDULES: "list_schedules", Reads;
    UNLISTED_SCHEDULES: "unlisted_schedules", Reads;
    CHECK_SCHEDULES: "check_schedules", Reads;
    GET: "get", Reads;
    GET_STORED: "get_stored", Reads;
    WAITS: "waits", Reads;
    PAGE: "page", Reads;
    INDEXED: "indexed", Reads;
    DEAD: "dead", Reads;
    PULL_LANES: "pull_lanes", Reads;
    LEASE_INFO: "lease_info", Reads;
    OUTBOX: "outbox", Reads;
    STATS: "stats", Reads;
    ACCEPTED: "accepted", Reads;
    TOPICS: "topics", Reads;
    DESTINATIONS: "destinations", Reads;
    PAUSED_DESTINATIONS: "paused_destinations", Reads;
    FORECAST_NEAR: "forecast_near", Reads;
    FORECAST_FAR: "forecast_far", Reads;
    GAUGES: "gauges", Reads;
    TOPIC_GAUGES: "topic_gauges", Reads;
    ATTEMPTS: "attempts", Reads;
    INSTALL: "install", Drains;
    NOTE_KEEP_DONE: "note_keep_done", Drains;
    LOSE: "lose", Drains;
    TAKE_BACK: "take_back", Drains;
    NOTE_FORGOTTEN: "note_forgotten", Drains;
    ACCEPT_LOSS: "accept_loss", Drains;
    NOTE_SERVERS: "note_servers", Drains;
    DROP_SERVER: "drop_server", Drains;
    MEMBERS: "members", Drains;
    GRANT_QUOTA: "grant_quota", Fills;
    PUT_LIMIT: "put_limit", Fills;
    LIMIT_NAMES: "limit_names", Reads;
    LIMITS: "limits", Reads;
    ADMIT: "admit", Drains;
    HOLD_FEED: "hold_feed", Drains;
    CHANGE_FEED: "change_feed", Drains;
    APPEND_AUDIT_LOG: "append_audit_log", Drains;
    READ_AUDIT_LOG: "read_audit_log", Reads;
    FAILING: "failing", Reads;
    CHANGE_FAILING: "change_failing", Drains;
    PUT_POLICY: "put_policy", Fills;
    DELETE_POLICY: "delete_policy", Drains;
    BEGIN_BULK: "begin_bulk", Fills;
    TAKE_BULK: "take_bulk", Drains;
    KEEP_BULK: "keep_bulk", Drains;
    END_BULK: "end_bulk", Drains;
    BULKS: "bulks", Reads;
    CHECK_SHARD: "check_shard", Reads;
    CHECK_JOBS: "check_jobs", Reads;
    CHECK_STATES: "check_states", Reads;
    CHECK_TAGS: "check_tags", Reads;
    CHECK_LANES: "check_lanes", Reads;
    CHECK_ENTRIES: "check_entries", Reads;
    CHECK_LISTS: "check_lists", Reads;
    CHECK_CONFIRM: "check_confirm", Reads;
    CHECK_REPAIR: "check_repair", Drains;
    CHECK_COUNT: "check_count", Drains;
    CHECK_INDEX: "check_index", Drains;
    CHECK_DUE: "check_due", Drains;
    CHECK_SLOT: "check_slot", Drains;
    CHECK_SLOTS: "check_slots", Reads;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fills_the_store_is_refused_when_memory_is_full_and_the_rest_goes_on() {
        const FILL: &str = "submit replace import reschedule revive revive_many bulk_revive bulk_reschedule \
            begin_bulk put_policy grant_quota put_limit log_attempts fire list_schedule";
        const READ: &str = "get get_stored waits page indexed stats accepted topics gauges topic_gauges \
            pull_lanes lease_info dead bulks versions attempts outbox due_schedules schedules list_schedules \
            unlisted_schedules archive_status destinations paused_destinations limits limit_names topic_order forecast_near forecast_far \
            read_audit_log failing check_shard check_jobs check_states check_tags check_lanes check_entries \
            check_lists check_confirm check_schedules check_slots";
        let has = |names: &str, name| names.split_ascii_whitespace().any(|one| one == name);
        for script in ALL {
            let expected = match script.name() {
                name if has(FILL, name) => Kind::Fills,
                name if has(READ, name) => Kind::Reads,
                _ => Kind::Drains,
            };
            assert_eq!(script.kind, expected, "{}", script.name());
        }
    }

    #[test]
    fn each_script_that_takes_transitions_has_a_function_that_returns_them() {
        assert_eq!(ALL.iter().filter(|script| script.takes_transitions()).count(), 25);
        let text = String::from_utf8(load().get_packed_command()).expect("text");
        for script in ALL {
            let logged = format!("_{}{LOGGED}'", script.name());
            assert_eq!(text.contains(&logged), script.takes_transitions(), "{}", script.name());
        }
    }

    #[test]
    fn every_script_says_what_it_takes_and_returns() {
        let text = FILES.concat();
        for Script { name, .. } in ALL {
            let script = text.split(&format!("-- {name}: ")).nth(1).unwrap_or_default();
            let (header, _) =
                script.split_once(&format!("function scripts.{name}(")).expect("name and function");
            for word in ["-- KEYS  ", "-- ARGV  ", "-- Returns "] {
                assert_eq!(header.matches(word).count(), 1, "{name}: {word}");
            }
        }
    }
}
