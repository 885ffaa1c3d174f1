//! What is done with a revival as a whole: begin it, take it, keep it, end it. Its jobs are
//! revived in `dead`.

use ringback_core::clock::millis_up;
use ringback_core::contract::{ENDED_REDRIVE_RETENTION, MAX_ENDED_REDRIVES, MAX_REDRIVES, StoreError, Wake};

use crate::tables::{RevivalEnd, RevivalRow};
use crate::txn::Txn;

/// Who has what is free.
const NOBODY: [u8; 8] = [0; 8];

/// None when too many go on.
pub(crate) fn begin_revival(
    txn: &mut Txn<'_>,
    id: [u8; 8],
    mut row: RevivalRow,
) -> Result<Option<RevivalRow>, StoreError> {
    if let Some(known) = txn.tables.revivals.get(id)? {
        return Ok(Some(known));
    }
    let (mut ended, running): (Vec<_>, Vec<_>) =
        txn.tables.revivals.all()?.into_iter().partition(|(_, row)| row.end.is_some());
    if running.len() >= MAX_REDRIVES {
        return Ok(None);
    }
    let ended_at = |row: &RevivalRow| row.end.map_or(0, RevivalEnd::at);
    ended.sort_unstable_by_key(|(_, row)| std::cmp::Reverse(ended_at(row)));
    for (n, (old, row)) in ended.iter().enumerate() {
        if n + 1 >= MAX_ENDED_REDRIVES
            || ended_at(row).saturating_add(millis_up(ENDED_REDRIVE_RETENTION)) < txn.now()
        {
            txn.tables.revivals.remove(*old)?;
        }
    }
    row.started = txn.now();
    txn.tables.revivals.put(id, &row)?;
    txn.tell(Wake::Redrive);
    Ok(Some(row))
}

/// What a call for work came to.
pub(crate) enum Free {
    This([u8; 8], RevivalRow),
    /// In so many ms.
    Later(u64),
    Nothing,
}

pub(crate) fn take_revival(txn: &mut Txn<'_>, holder: [u8; 8], ttl: u64) -> Result<Free, StoreError> {
    let running = txn.tables.revivals.all()?.into_iter().filter(|(_, row)| row.end.is_none());
    let Some((id, mut row)) = running.min_by_key(|(id, row)| (row.until, *id)) else {
        return Ok(Free::Nothing);
    };
    if row.until > txn.now() {
        return Ok(Free::Later(row.until - txn.now()));
    }
    (row.holder, row.until) = (holder, txn.now().saturating_add(ttl));
    txn.tables.revivals.put(id, &row)?;
    Ok(Free::This(id, row))
}

/// False when it is over, or another's.
pub(crate) fn keep_revival(
    txn: &mut Txn<'_>,
    id: [u8; 8],
    holder: [u8; 8],
    ttl: u64,
) -> Result<bool, StoreError> {
    let row = txn.tables.revivals.get(id)?.filter(|row| row.end.is_none() && row.holder == holder);
    let Some(mut row) = row else { return Ok(false) };
    if ttl > 0 {
        row.until = txn.now().saturating_add(ttl);
    } else {
        (row.holder, row.until) = (NOBODY, 0);
        txn.tell(Wake::Redrive);
    }
    txn.tables.revivals.put(id, &row)?;
    Ok(true)
}

/// As it is then. `holder`: only if it is that one's.
pub(crate) fn end_revival(
    txn: &mut Txn<'_>,
    id: [u8; 8],
    holder: Option<[u8; 8]>,
    end: fn(u64) -> RevivalEnd,
) -> Result<Option<RevivalRow>, StoreError> {
    let Some(mut row) = txn.tables.revivals.get(id)? else { return Ok(None) };
    if row.end.is_none() && holder.is_none_or(|holder| holder == row.holder) {
        row.end = Some(end(txn.now()));
        txn.tables.revivals.put(id, &row)?;
    }
    Ok(Some(row))
}
