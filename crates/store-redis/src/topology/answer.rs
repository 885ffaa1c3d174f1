//! What sentinels and masters say of themselves, read.

use std::collections::HashMap;

use redis::{RedisError, Value};
use ringback_core::contract::StoreError;

/// A master as a sentinel names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Master {
    pub(super) address: (String, u16),
    /// Grows with each fail-over.
    pub(super) epoch: u64,
}

/// Reads the answers to SENTINEL MASTER and SENTINEL GET-MASTER-ADDR-BY-NAME.
pub(super) fn master(master: Value, address: Value) -> Result<Master, StoreError> {
    let unreadable = || StoreError::Unreadable("the answer of a sentinel");
    let fields: HashMap<String, String> = redis::from_redis_value(master).map_err(|_| unreadable())?;
    let epoch = fields.get("config-epoch").and_then(|epoch| epoch.parse().ok()).ok_or_else(unreadable)?;
    let address = redis::from_redis_value(address).map_err(|_| unreadable())?;
    Ok(Master { address, epoch })
}

/// Whether a sentinel does not know the name of the master. It has no error code for that.
pub(super) fn is_unknown(error: &StoreError) -> bool {
    let StoreError::Refused(source) = error else { return false };
    let detail = source.downcast_ref::<RedisError>().and_then(RedisError::detail);
    detail.is_some_and(|detail| detail.starts_with("No such master"))
}

/// Whether this is the answer of a master to INFO replication.
pub(super) fn is_of_master(info: &str) -> bool {
    info.lines().any(|line| line.trim() == "role:master")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Value {
        Value::Array(words.iter().map(|word| Value::BulkString(word.as_bytes().to_vec())).collect())
    }

    #[test]
    fn the_address_and_the_epoch_of_a_master_are_read() {
        let (fields, address) =
            (strings(&["name", "m", "config-epoch", "7"]), strings(&["10.0.0.1", "6379"]));
        let expected = Master { address: ("10.0.0.1".to_owned(), 6379), epoch: 7 };
        assert_eq!(master(fields.clone(), address.clone()).unwrap(), expected);
        assert!(master(fields, Value::Nil).is_err());
        assert!(master(strings(&["name", "m"]), address).is_err());
    }

    #[test]
    fn only_a_master_says_that_it_is_one() {
        assert!(is_of_master("# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"));
        assert!(!is_of_master("# Replication\r\nrole:slave\r\nmaster_host:a\r\n"));
    }
}
