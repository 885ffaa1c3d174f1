//! Logs of attempts by the name of their job, in the order in which they were last added to,
//! and how many bytes those of each shard take. Jobs know nothing of them.

use redb::{ReadTransaction, ReadableTable as _, TableDefinition, TableError, WriteTransaction};
use ringback_core::contract::StoreError;

use super::rows::{Journal, Name, Rows};

type ByTime = (u16, u64, [u8; 12]);

const LOGS: TableDefinition<'static, [u8; 12], (u64, &[u8])> = TableDefinition::new("attempts");
const ORDER: TableDefinition<'static, ByTime, ()> = TableDefinition::new("attempts_by_time");
const SIZES: TableDefinition<'static, u16, u64> = TableDefinition::new("attempts_bytes");

pub(crate) struct Attempts<'t> {
    pub(crate) logs: Rows<'t, [u8; 12], (u64, &'static [u8])>,
    pub(crate) order: Rows<'t, ByTime, ()>,
    pub(crate) sizes: Rows<'t, u16, u64>,
}

/// About what a log of so many bytes takes, with its entries and the room that pages leave.
pub(crate) const fn cost(bytes: usize) -> u64 {
    bytes as u64 * 5 / 4 + 128
}

impl<'t> Attempts<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction, journal: &'t Journal) -> Result<Self, StoreError> {
        Ok(Self {
            logs: Rows::open(txn, journal, Name::Attempts, LOGS)?,
            order: Rows::open(txn, journal, Name::AttemptsByTime, ORDER)?,
            sizes: Rows::open(txn, journal, Name::AttemptsBytes, SIZES)?,
        })
    }

    /// A packed log.
    pub(crate) fn get(&self, locator: [u8; 12]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.logs.get(locator)?.map(|row| row.value().1.to_vec()))
    }

    /// Writes a log that was added to at a time, in ms.
    pub(crate) fn put(
        &mut self,
        shard: u16,
        at: u64,
        locator: [u8; 12],
        log: &[u8],
    ) -> Result<(), StoreError> {
        let before = self.take(shard, locator)?;
        self.logs.insert(locator, (at, log))?;
        self.order.insert((shard, at, locator), ())?;
        let bytes = self.bytes(shard)?.saturating_sub(before) + cost(log.len());
        self.sizes.insert(shard, bytes)?;
        Ok(())
    }

    /// Forgets those that were last added to before a time, in ms, and the oldest while all
    /// take more than so many bytes; at most `limit`.
    pub(crate) fn trim(
        &mut self,
        shard: u16,
        before: u64,
        bytes: u64,
        limit: usize,
    ) -> Result<(), StoreError> {
        let rows = self.order.range((shard, 0, [0; 12])..=(shard, u64::MAX, [255; 12]))?.take(limit);
        let oldest = rows.map(|row| row.map(|(key, _)| key.value())).collect::<Result<Vec<_>, _>>()?;
        for (_, at, locator) in oldest {
            let taken = self.bytes(shard)?;
            if at >= before && taken <= bytes {
                break;
            }
            let freed = self.take(shard, locator)?;
            self.sizes.insert(shard, taken.saturating_sub(freed))?;
        }
        Ok(())
    }

    fn bytes(&self, shard: u16) -> Result<u64, StoreError> {
        Ok(self.sizes.get(shard)?.map_or(0, |bytes| bytes.value()))
    }

    /// Removes a log, if there is one; and about what it took.
    fn take(&mut self, shard: u16, locator: [u8; 12]) -> Result<u64, StoreError> {
        let removed = self.logs.remove(locator)?.map(|row| (row.value().0, row.value().1.len()));
        let Some((at, length)) = removed else { return Ok(0) };
        self.order.remove((shard, at, locator))?;
        Ok(cost(length))
    }
}

/// What does not fit, and in which shard: each log stands in the order once, and their bytes add up.
pub(crate) fn audit(txn: &ReadTransaction) -> Result<Vec<(u16, String)>, StoreError> {
    let (logs, order, sizes) = match (txn.open_table(LOGS), txn.open_table(ORDER), txn.open_table(SIZES)) {
        // A file from before there were logs, that nothing was written to since.
        (Err(TableError::TableDoesNotExist(_)), ..) => return Ok(Vec::new()),
        (logs, order, sizes) => (logs?, order?, sizes?),
    };
    let (mut findings, mut counted) = (Vec::new(), std::collections::BTreeMap::<u16, u64>::new());
    let mut ordered = 0;
    for row in order.iter()? {
        let (shard, at, locator) = row?.0.value();
        ordered += 1;
        match logs.get(locator)?.map(|row| (row.value().0, row.value().1.len())) {
            Some((since, length)) if since == at => *counted.entry(shard).or_default() += cost(length),
            other => {
                let detail = format!("attempts of {locator:?} stand at {at}, and are {other:?}");
                findings.push((shard, detail));
            }
        }
    }
    let mut kept = 0_u64;
    for row in logs.iter()? {
        row?;
        kept += 1;
    }
    if kept != ordered {
        findings.push((0, format!("{kept} logs of attempts stand in {ordered} places, in all shards")));
    }
    for row in sizes.iter()? {
        let (shard, bytes) = row?;
        let own = counted.remove(&shard.value()).unwrap_or(0);
        if own != bytes.value() {
            let detail = format!("attempts are said to take {} bytes, and take {own}", bytes.value());
            findings.push((shard.value(), detail));
        }
    }
    findings.extend(
        counted.iter().map(|(shard, bytes)| (*shard, format!("{bytes} bytes of attempts are not counted"))),
    );
    Ok(findings)
}
