//! The scripts: one Lua file per edge, behind the pieces of the prelude, all together one
//! function library of Redis. Each piece owns one part of the layout (records, due times,
//! ready queues …). Redis makes the functions once, at the first call, and not for each.
//!
//! Where the library cannot be loaded, as when memory is full, the same text runs as a
//! script, which costs more and does the same.

use std::sync::LazyLock;

use redis::{Cmd, Value};
use sha2::{Digest as _, Sha256};

/// What a call may do when memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Adds jobs: refused before it writes.
    Fills,
    /// Goes on, since it is what makes room.
    Drains,
    /// Writes nothing.
    Reads,
}

impl Kind {
    /// As the flags of a script.
    const fn shebang(self) -> &'static str {
        match self {
            Self::Fills => "#!lua",
            Self::Drains => "#!lua flags=allow-oom",
            Self::Reads => "#!lua flags=no-writes",
        }
    }

    /// As the flags of a function.
    const fn flags(self) -> &'static str {
        match self {
            Self::Fills => "{}",
            Self::Drains => "{'allow-oom'}",
            Self::Reads => "{'no-writes'}",
        }
    }
}

/// A script, by the name of its edge.
#[derive(Debug)]
pub(crate) struct Script {
    name: &'static str,
    kind: Kind,
    body: &'static str,
}

impl Script {
    /// The edge's name.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Calls it as a function of the library.
    pub(crate) fn as_function(&self, key: &str) -> Cmd {
        let mut cmd = redis::cmd("FCALL");
        cmd.arg(format!("{}_{}", LIBRARY.name, self.name)).arg(1).arg(key);
        cmd
    }

    /// Calls it with all of its text.
    pub(crate) fn as_text(&self, key: &str) -> Cmd {
        let shebang = self.kind.shebang();
        let source = format!("{shebang}\n{}\nreturn init()('{}', KEYS[1], ARGV)", LIBRARY.init, self.name);
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(source).arg(1).arg(key);
        cmd
    }
}

/// All scripts as Redis takes them.
struct Library {
    /// Made of its text, so that processes of two versions do not get in each other's way.
    name: String,
    /// `init` makes all functions and returns how to call one.
    init: String,
}

static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    // What a script alone uses stays inside its block: Lua has room for 200 locals.
    let bodies: String = ALL.iter().map(|script| format!("do\n{}\nend\n", script.body)).collect();
    let init = format!(
        "local function init()\nlocal edges = {{}}\n{}\n{bodies}\n\
         return function(name, base, args)\nstart(base)\nreturn edges[name](args)\nend\nend",
        PIECES.concat()
    );
    let digest = Sha256::digest(&init);
    let name = digest[..4].iter().fold("ringback_".to_owned(), |name, b| format!("{name}{b:02x}"));
    Library { name, init }
});

/// Loads the library; again does no harm.
pub(crate) fn load() -> Cmd {
    let Library { name, init } = &*LIBRARY;
    // Nothing of Redis is there to use while a library loads, so its functions are made by
    // the first call.
    let mut source = format!("#!lua name={name}\n{init}\nlocal run\n");
    for Script { name: edge, kind, .. } in ALL {
        let flags = kind.flags();
        source.push_str(&format!(
            "redis.register_function{{function_name='{name}_{edge}', flags={flags}, \
             callback=function(keys, args) run = run or init() return run('{edge}', keys[1], args) end}}\n"
        ));
    }
    let mut cmd = redis::cmd("FUNCTION");
    cmd.arg("LOAD").arg("REPLACE").arg(source);
    cmd
}

macro_rules! pieces {
    ($($file:literal)*) => {
        /// In an order in which each finds what it uses.
        const PIECES: &[&str] = &[$(include_str!(concat!("lua/prelude/", $file, ".lua"))),*];
    };
}

pieces! {
    "base" "shard" "records" "due" "turns" "ready" "lanes" "leases" "dead" "outbox" "tombs" "lateness"
    "topics" "arrivals" "outcomes" "events" "moves" "revivals" "attempts" "carrier" "audits" "call"
}

macro_rules! scripts {
    ($($name:ident: $file:literal, $kind:ident;)*) => {
        $(pub(crate) static $name: Script =
            Script { name: $file, kind: Kind::$kind, body: include_str!(concat!("lua/", $file, ".lua")) };)*
        const ALL: &[&Script] = &[$(&$name),*];
    };
}

scripts! {
    SUBMIT: "submit", Fills;
    IMPORT: "import", Fills;
    GET: "get", Reads;
    PAGE: "page", Reads;
    CANCEL: "cancel", Drains;
    RESCHEDULE: "reschedule", Fills;
    RUN: "run", Drains;
    REVIVE: "revive", Fills;
    PURGE: "purge", Drains;
    DEAD: "dead", Reads;
    PURGE_MANY: "purge_many", Drains;
    REVIVE_MANY: "revive_many", Fills;
    REVIVED: "revived", Drains;
    BEGIN_REVIVAL: "begin_revival", Fills;
    TAKE_REVIVAL: "take_revival", Drains;
    KEEP_REVIVAL: "keep_revival", Drains;
    END_REVIVAL: "end_revival", Drains;
    REVIVALS: "revivals", Reads;
    PROMOTE: "promote", Drains;
    RESERVE: "reserve", Drains;
    PULL: "pull", Drains;
    PULLS: "pulls", Reads;
    HELD: "held", Reads;
    RENEW: "renew", Drains;
    SETTLE: "settle", Drains;
    EXCHANGE: "exchange", Drains;
    SETTLE_RECEIPTS: "settle_receipts", Drains;
    RECOVER: "recover", Drains;
    EXPIRE: "expire", Drains;
    OUTBOX: "outbox", Reads;
    TELL: "tell", Drains;
    CLAIM: "claim", Drains;
    YIELD: "yield", Drains;
    STATS: "stats", Reads;
    TOPICS: "topics", Reads;
    PAUSE: "pause", Drains;
    RESUME: "resume", Drains;
    NOTE: "note", Fills;
    ATTEMPTS: "attempts", Reads;
    MEMBERS: "members", Drains;
    WATCH: "watch", Drains;
    INSTALL: "install", Drains;
    PUT_POLICY: "put_policy", Fills;
    DELETE_POLICY: "delete_policy", Drains;
    AUDIT_SHARD: "audit_shard", Reads;
    AUDIT_JOBS: "audit_jobs", Reads;
    AUDIT_RUNS: "audit_runs", Reads;
    AUDIT_LANES: "audit_lanes", Reads;
    AUDIT_ENTRIES: "audit_entries", Reads;
    AUDIT_LISTS: "audit_lists", Reads;
    AUDIT_CONFIRM: "audit_confirm", Reads;
    AUDIT_MEND: "audit_mend", Drains;
    AUDIT_COUNT: "audit_count", Drains;
}

/// A reply taken apart; each step says what it expected.
pub(crate) mod reply {
    use super::Value;
    use ringback_core::contract::StoreError;

    pub(crate) fn list(value: Value) -> Result<Vec<Value>, StoreError> {
        match value {
            Value::Array(items) => Ok(items),
            _ => Err(StoreError::Unreadable("a reply that is no list")),
        }
    }

    pub(crate) fn int(value: &Value) -> Result<i64, StoreError> {
        match value {
            Value::Int(n) => Ok(*n),
            _ => Err(StoreError::Unreadable("a reply that is no number")),
        }
    }

    pub(crate) fn number<T: TryFrom<i64>>(value: &Value) -> Result<T, StoreError> {
        T::try_from(int(value)?).map_err(|_| StoreError::Unreadable("a number out of range"))
    }

    pub(crate) fn bytes(value: Value) -> Result<bytes::Bytes, StoreError> {
        match value {
            Value::BulkString(bytes) => Ok(bytes.into()),
            _ => Err(StoreError::Unreadable("a reply that is no string")),
        }
    }

    pub(crate) fn text(value: Value) -> Result<String, StoreError> {
        String::from_utf8(bytes(value)?.into()).map_err(|_| StoreError::Unreadable("a reply that is no text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fills_the_store_is_refused_when_memory_is_full_and_the_rest_goes_on() {
        for script in ALL {
            let expected = match script.name() {
                "submit" | "import" | "reschedule" | "revive" | "revive_many" | "begin_revival"
                | "put_policy" | "note" => Kind::Fills,
                "get" | "page" | "stats" | "topics" | "pulls" | "held" | "dead" | "revivals" | "attempts"
                | "outbox" => Kind::Reads,
                "audit_mend" | "audit_count" => Kind::Drains,
                name if name.starts_with("audit_") => Kind::Reads,
                _ => Kind::Drains,
            };
            assert_eq!(script.kind, expected, "{}", script.name());
        }
    }

    #[test]
    fn every_script_says_what_it_takes_and_returns() {
        for script in ALL {
            for word in ["-- KEYS  ", "-- ARGV  ", "-- Returns "] {
                assert!(script.body.contains(word), "{} lacks {word}", script.name());
            }
            assert!(script.body.contains(&format!("function edges.{}(", script.name())), "{}", script.name());
        }
    }
}
