//! The scripts: one Lua file per edge, behind the pieces of the prelude that it needs, and
//! how one is called. Each piece owns one part of the layout (records, due times, ready
//! queues …); a script carries no more than it uses, since Redis runs all of it each time.

use std::sync::LazyLock;

use redis::{Cmd, Value};

/// A script and its digest.
pub(super) struct Script {
    name: &'static str,
    source: String,
    sha: String,
}

impl Script {
    /// Puts the pieces between the `#!lua` line and the body. All but the first are inside a
    /// function: to make a closure, Lua walks the captured locals of the function around it,
    /// and those further out, which all use, are not in its way then.
    fn new(name: &'static str, file: &str, pieces: &[&str]) -> Self {
        let (shebang, body) = file.split_once('\n').expect("a script has more than one line");
        let source = match pieces {
            [] => format!("{shebang}\n{body}"),
            [first, rest @ ..] => {
                format!("{shebang}\n{first}\nreturn (function()\n{}\n{body}\nend)()", rest.concat())
            }
        };
        let sha = redis::Script::new(&source).get_hash().to_owned();
        Self { name, source, sha }
    }

    /// The edge's name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Calls it by its digest.
    pub(super) fn by_digest(&self, key: &str) -> Cmd {
        let mut cmd = redis::cmd("EVALSHA");
        cmd.arg(&self.sha).arg(1).arg(key);
        cmd
    }

    /// Calls it by its text, which also loads it.
    pub(super) fn by_text(&self, key: &str) -> Cmd {
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(&self.source).arg(1).arg(key);
        cmd
    }
}

macro_rules! pieces {
    ($($name:ident: $file:literal;)*) => {
        $(const $name: &str = include_str!(concat!("lua/prelude/", $file, ".lua"));)*
    };
}

pieces! {
    BASE: "base";
    SHARD: "shard";
    RECORDS: "records";
    ARRIVALS: "arrivals";
    DEPARTURES: "departures";
    TOPICS: "topics";
    DUE: "due";
    TURNS: "turns";
    READY: "ready";
    LANES: "lanes";
    HANDOVER: "handover";
    LEASES: "leases";
    SETTLED: "settled";
    CALLERS: "callers";
    DEAD: "dead";
    TOMBS: "tombs";
    BURIAL: "burial";
    LATENESS: "lateness";
    CARRIER: "carrier";
}

macro_rules! scripts {
    ($($name:ident: $file:literal, $pieces:expr;)*) => {
        $(pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new($file, include_str!(concat!("lua/", $file, ".lua")), &$pieces));)*
        /// All of them.
        #[cfg(test)]
        fn all() -> Vec<&'static Script> {
            vec![$(&$name),*]
        }
    };
}

scripts! {
    SUBMIT: "submit", [BASE, SHARD, RECORDS, TOPICS, DUE, READY, TOMBS, ARRIVALS];
    IMPORT: "import", [BASE, SHARD, RECORDS, TOPICS, DUE, READY, TOMBS, ARRIVALS, DEAD];
    GET: "get", [BASE, SHARD, RECORDS, TOMBS];
    PAGE: "page", [BASE, SHARD, RECORDS, DUE];
    CANCEL: "cancel", [BASE, SHARD, RECORDS, DEPARTURES, DUE, LEASES, SETTLED, DEAD, TOMBS, BURIAL];
    PROMOTE: "promote", [BASE, SHARD, RECORDS, DUE, TURNS, READY, CARRIER];
    RESERVE: "reserve", [BASE, SHARD, RECORDS, READY, LANES, LEASES, HANDOVER, CALLERS];
    RENEW: "renew", [BASE, SHARD, RECORDS, LEASES];
    SETTLE: "settle",
        [BASE, SHARD, RECORDS, DEPARTURES, DUE, READY, LEASES, SETTLED, DEAD, TOMBS, BURIAL, LATENESS];
    RECOVER: "recover", [BASE, SHARD, RECORDS, DEPARTURES, READY, LEASES, SETTLED, DEAD, TOMBS, BURIAL, CARRIER];
    EXPIRE: "expire", [BASE, SHARD, RECORDS, DEPARTURES, DEAD, CARRIER];
    CLAIM: "claim", [BASE, SHARD, CARRIER];
    YIELD: "yield", [BASE, SHARD, CARRIER];
    STATS: "stats", [BASE, SHARD, LATENESS];
    MEMBERS: "members", [];
    INSTALL: "install", [];
}

/// A reply taken apart; each step says what it expected.
pub(super) mod reply {
    use super::Value;
    use crate::store::StoreError;

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
    fn every_script_that_drains_may_run_when_memory_is_full_and_one_that_fills_may_not() {
        for script in all() {
            let shebang = script.source.lines().next().unwrap();
            let expected = match script.name() {
                "submit" | "import" => "#!lua",
                "get" | "page" | "stats" => "#!lua flags=no-writes",
                _ => "#!lua flags=allow-oom",
            };
            assert_eq!(shebang, expected, "{}", script.name());
        }
    }

    #[test]
    fn every_script_says_what_it_takes_and_returns() {
        for script in all() {
            for word in ["-- KEYS  ", "-- ARGV  ", "-- Returns "] {
                assert!(script.source.contains(word), "{} lacks {word}", script.name());
            }
        }
    }
}
