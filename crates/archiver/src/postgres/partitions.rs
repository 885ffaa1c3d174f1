//! The monthly partitions of ended jobs and their bodies: makes them when they are needed or ahead, and drops them when
//! all of their rows are older than the retention.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tokio_postgres::Client;

use super::Failed;
use super::schema::LOCK;

const TABLES: [&str; 2] = ["ringback_ended_jobs", "ringback_bodies"];

/// How many rows of the default partition one statement removes, and how many statements there are at a time.
const REMOVED: u64 = 5_000;
const STATEMENTS: usize = 10;

/// A month in UTC: its year and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Month(i16, i8);

impl Month {
    /// The month of a time in ms.
    pub(super) fn of(ms: i64) -> Self {
        let time = Timestamp::from_millisecond(ms).unwrap_or_default();
        let date = TimeZone::UTC.to_datetime(time).date();
        Self(date.year(), date.month())
    }

    pub(super) fn next(self) -> Self {
        if self.1 == 12 { Self(self.0 + 1, 1) } else { Self(self.0, self.1 + 1) }
    }

    fn first_day(self) -> String {
        format!("{:04}-{:02}-01", self.0, self.1)
    }

    /// The end of the names of the partitions of this month, such as `2026_11`.
    fn suffix(self) -> String {
        format!("{:04}_{:02}", self.0, self.1)
    }

    fn from_suffix(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('_')?;
        let (year, month) = (year.parse().ok()?, month.parse().ok()?);
        Date::new(year, month, 1).ok().map(|_| Self(year, month))
    }

    /// When the month ends, in ms; `None` if that is beyond the calendar.
    fn end(self) -> Option<i64> {
        let Self(year, month) = self.next();
        let first = Date::new(year, month, 1).ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(first.timestamp().as_millisecond())
    }
}

/// Makes the partitions of a month, unless they are there. False if the database refuses one, which is logged, for
/// example because rows of the month are in the default partition or a lock is not free within its limit; rows then go
/// to the default partition.
pub(super) async fn ensure(client: &mut Client, month: Month) -> Result<bool, Failed> {
    let (from, until) = (month.first_day(), month.next().first_day());
    let mut are_made = true;
    for table in TABLES {
        let txn = client.transaction().await?;
        txn.execute("select pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        let sql = format!(
            "create table if not exists {table}_{} partition of {table} for values from ('{from}') to ('{until}')",
            month.suffix()
        );
        match txn.batch_execute(&sql).await {
            Ok(()) => txn.commit().await?,
            Err(error) if error.as_db_error().is_some() => {
                txn.rollback().await?;
                tracing::warn!(
                    table,
                    month = from,
                    %error,
                    "no partition can be made for this month: its rows go to the default one"
                );
                are_made = false;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(are_made)
}

/// Drops the partitions of months that ended by `before`, in ms, and removes up to 50,000 earlier rows of each default
/// partition.
pub(super) async fn drop_before(client: &mut Client, before: i64) -> Result<(), Failed> {
    for table in TABLES {
        let sql = "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = to_regclass($1)";
        for row in client.query(sql, &[&table]).await? {
            let name: String = row.get(0);
            let month =
                name.strip_prefix(table).and_then(|rest| rest.strip_prefix('_')).and_then(Month::from_suffix);
            if month.and_then(Month::end).is_some_and(|end| end <= before) {
                client.batch_execute(&format!("drop table if exists {name}")).await?;
                tracing::info!(partition = name, "removed ended jobs that were kept long enough");
            }
        }
        let sql = format!(
            "delete from {table}_default where ctid = any(array(select ctid from {table}_default \
            where finished_at < 'epoch'::timestamptz + $1 * interval '1 millisecond' limit {REMOVED}))"
        );
        for _ in 0..STATEMENTS {
            if client.execute(&sql, &[&(before as f64)]).await? < REMOVED {
                break;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_follow_each_other_and_end_at_midnight_in_utc() {
        let month = Month::of(1_798_761_599_999);
        assert_eq!((month, month.next()), (Month(2026, 12), Month(2027, 1)));
        assert_eq!(month.end(), Some(1_798_761_600_000));
        assert_eq!((month.first_day(), month.suffix()), ("2026-12-01".to_owned(), "2026_12".to_owned()));
        assert_eq!(Month::from_suffix("2026_12"), Some(month));
        assert_eq!((Month::from_suffix("default"), Month::from_suffix("2026_13")), (None, None));
    }
}
