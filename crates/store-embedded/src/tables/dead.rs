//! Reading on through the dead jobs of a shard, in order of death, with their records.

use redb::ReadTransaction;
use ringback_core::contract::StoreError;

use super::records::{BODIES, Body, JOBS, Record};
use super::times;
use crate::dead::Range;

/// What was found, each with time of death and number, and up to which of those it has read;
/// `None`: to the end.
type Found<T> = (Vec<(u64, u64, T)>, Option<(u64, u64)>);

/// Those that are wanted, as `show` makes them; what cannot be read is passed over.
pub(crate) fn read_dead<T>(
    txn: &ReadTransaction,
    range: &Range,
    wanted: impl Fn(&Record) -> bool,
    show: impl Fn(Record, &dyn Fn() -> Option<Body>) -> Option<T>,
) -> Result<Found<T>, StoreError> {
    let (jobs, bodies) = (txn.open_table(JOBS)?, txn.open_table(BODIES)?);
    let dead = txn.open_table(times::DEAD.1)?;
    let (mut found, mut reached) = (Vec::new(), None);
    let begin = (range.shard, range.from.0, range.from.1);
    let end = (range.shard, range.before, 0).max(begin);
    for (looked, row) in dead.range(begin..end)?.enumerate() {
        if looked == range.look || found.len() == range.limit {
            return Ok((found, reached));
        }
        let (_, at, number) = row?.0.value();
        reached = Some((at, number));
        let record = jobs.get(number)?.and_then(|raw| Record::unpack(number, raw.value()));
        let body = || bodies.get(number).ok().flatten().and_then(|raw| Body::unpack(raw.value()));
        let item = record.filter(&wanted).and_then(|record| show(record, &body));
        found.extend(item.map(|item| (at, number, item)));
    }
    Ok((found, None))
}
