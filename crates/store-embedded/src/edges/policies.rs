//! The policies of topics are put and deleted. No edges: no job is touched.

use ringback_core::contract::{PolicyPut, PolicyVersion, StoreError};

use crate::txn::Txn;

pub(crate) fn put_policy(
    txn: &mut Txn<'_>,
    topic: &str,
    written: &str,
    most: usize,
) -> Result<PolicyPut, StoreError> {
    let (is_known, now_us) = (txn.tables.policies.get(topic)?.is_some(), txn.now_us());
    if !is_known && txn.tables.policies.count()? >= most as u64 {
        return Ok(PolicyPut::TooMany);
    }
    let version = PolicyVersion(txn.tables.policies.put(topic, written, now_us)?);
    Ok(if is_known { PolicyPut::Replaced(version) } else { PolicyPut::Created(version) })
}

/// The version, where it had one.
pub(crate) fn delete_policy(txn: &mut Txn<'_>, topic: &str) -> Result<Option<u64>, StoreError> {
    let now_us = txn.now_us();
    txn.tables.policies.remove(topic, now_us)
}
