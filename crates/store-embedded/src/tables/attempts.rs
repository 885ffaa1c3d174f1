//! The logs of attempts: one per job, by its locator; an index of logs by the time at which they were last added to; and
//! how many bytes the logs of each shard take. Records of jobs do not mention them.

use std::collections::BTreeMap;

use super::definitions::{ATTEMPTS, ATTEMPTS_BY_TIME, ATTEMPTS_BYTES};
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

pub(crate) struct Attempts<A: Access> {
    logs: Rows<A, [u8; 12], (u64, &'static [u8])>,
    order: Rows<A, (u16, u64, [u8; 12]), ()>,
    sizes: Rows<A, u16, u64>,
}

/// Returns about how many bytes a log of this length takes, with its index entries and the slack of pages.
pub(crate) const fn cost(bytes: usize) -> u64 {
    bytes as u64 * 5 / 4 + 128
}

impl<A: Access> Attempts<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        Ok(Self {
            logs: access.open(ATTEMPTS)?,
            order: access.open(ATTEMPTS_BY_TIME)?,
            sizes: access.open(ATTEMPTS_BYTES)?,
        })
    }

    /// Returns the packed log of a job; `None` if it has none.
    pub(crate) fn get(&self, locator: [u8; 12]) -> Result<Option<Vec<u8>>> {
        self.logs.read(locator, |(_, log)| log.to_vec())
    }

    /// Returns how many bytes the logs of a shard take.
    fn bytes(&self, shard: u16) -> Result<u64> {
        Ok(self.sizes.read(shard, |bytes| bytes)?.unwrap_or(0))
    }

    /// Checks that each log is in the index once and that the bytes add up. Returns the faults, each with its shard.
    pub(crate) fn faults(&self) -> Result<Vec<(u16, String)>> {
        let (mut faults, mut counted) = (Vec::new(), BTreeMap::<u16, u64>::new());
        self.order.each(|(shard, at, locator), ()| {
            match self.logs.read(locator, |(since, log)| (since, log.len()))? {
                Some((since, length)) if since == at => *counted.entry(shard).or_default() += cost(length),
                other => {
                    let detail =
                        format!("attempts of {locator:?} are listed at {at}, but stored as {other:?}");
                    faults.push((shard, detail));
                }
            }
            Ok(())
        })?;
        let (logs, listed) = (self.logs.len()?, self.order.len()?);
        if logs != listed {
            faults.push((0, format!("{logs} logs of attempts have {listed} entries, in all shards")));
        }
        self.sizes.each(|shard, bytes| {
            let own = counted.remove(&shard).unwrap_or(0);
            if own != bytes {
                faults.push((shard, format!("attempts are counted as {bytes} bytes, but take {own}")));
            }
            Ok(())
        })?;
        let uncounted = |(shard, bytes)| (shard, format!("{bytes} bytes of attempts are not counted"));
        faults.extend(counted.into_iter().map(uncounted));
        Ok(faults)
    }
}

impl Attempts<Writing<'_>> {
    /// Writes a log that was added to at `at`, in ms, in place of the job's old one, and updates the index and the bytes.
    pub(crate) fn put(&mut self, shard: u16, at: u64, locator: [u8; 12], log: &[u8]) -> Result<()> {
        let before = self.take(shard, locator)?;
        self.logs.insert(locator, (at, log))?;
        self.order.insert((shard, at, locator), ())?;
        let bytes = self.bytes(shard)?.saturating_sub(before) + cost(log.len());
        self.sizes.insert(shard, bytes)
    }

    /// Removes logs that were last added to before a time, in ms, and the oldest logs while all of them take more than
    /// `bytes`. Removes at most `limit` logs.
    pub(crate) fn trim(&mut self, shard: u16, before: u64, bytes: u64, limit: usize) -> Result<()> {
        let all = (shard, 0, [0; 12])..=(shard, u64::MAX, [255; 12]);
        for (_, at, locator) in self.order.list(all, limit, |key, ()| key)? {
            let taken = self.bytes(shard)?;
            if at >= before && taken <= bytes {
                break;
            }
            let freed = self.take(shard, locator)?;
            self.sizes.insert(shard, taken.saturating_sub(freed))?;
        }
        Ok(())
    }

    /// Removes a log and its index entry, and returns the bytes that it took, 0 if there was none. The caller updates
    /// the bytes of the shard.
    fn take(&mut self, shard: u16, locator: [u8; 12]) -> Result<u64> {
        let removed = self.logs.remove(locator)?.map(|row| (row.value().0, row.value().1.len()));
        let Some((at, length)) = removed else { return Ok(0) };
        self.order.remove((shard, at, locator))?;
        Ok(cost(length))
    }
}
