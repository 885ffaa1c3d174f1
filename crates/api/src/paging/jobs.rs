//! Pages of the job list, put together from pages of the store. A page of the store scans a number of
//! jobs and returns those that match the filter. It may return none, or more than it was asked to scan,
//! since it returns jobs that are stored together at once. Jobs that do not fit on a page are left for
//! the next one. A page of whole jobs also ends once they have [`MAX_PAGE_BYTES`]; it exceeds them by one
//! page of the store at most, which has a limit of its own.

use std::fmt::{self, Display};
use std::future::Future;
use std::str::FromStr;
use std::time::Duration;

use ringback_core::job::JobKey;
use ringback_core::store_types::{Cursor, InvalidCursor, ListedJob, Page, StoreError, StoredJob};
use tokio::time::Instant;

use super::MAX_PAGE_BYTES;

/// After this time a page is returned though it is not full.
const FILL_FOR: Duration = Duration::from_millis(500);
/// How many jobs one page of the store scans, so that the store can answer others between two of them. A page of whole
/// jobs exceeds [`MAX_PAGE_BYTES`] by that many at most.
const SCAN: usize = 100;

/// Where a page begins: at a cursor of the store, or among the jobs that it returns together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListCursor {
    /// `None` for the beginning.
    at: Option<Cursor>,
    within: Option<Within>,
}

/// A place among jobs that the store returns together and that do not fit on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Within {
    /// The cursor after them. If it has changed they are other jobs, and none is skipped.
    end: Option<Cursor>,
    /// The last one that was listed, in the order of locators.
    last: Locator,
}

type Locator = [u8; 12];

impl From<Cursor> for ListCursor {
    fn from(at: Cursor) -> Self {
        Self { at: Some(at), within: None }
    }
}

impl Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |cursor: &Option<Cursor>| cursor.map(|cursor| cursor.to_string()).unwrap_or_default();
        f.write_str(&text(&self.at))?;
        let Some(Within { end, last }) = &self.within else { return Ok(()) };
        write!(f, ".{}.", text(end))?;
        last.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ListCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let cursor = |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some) };
        let parts: Vec<_> = text.split('.').collect();
        match parts[..] {
            [at] => Ok(Self { at: Some(at.parse()?), within: None }),
            [at, end, last] => {
                let within = Within { end: cursor(end)?, last: locator(last).ok_or(InvalidCursor)? };
                Ok(Self { at: cursor(at)?, within: Some(within) })
            }
            _ => Err(InvalidCursor),
        }
    }
}

fn locator(text: &str) -> Option<Locator> {
    let number =
        u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 24 && !text.starts_with('+'))?;
    number.to_be_bytes()[4..].try_into().ok()
}

pub(crate) trait Listed {
    fn key(&self) -> &JobKey;
}

impl Listed for ListedJob {
    fn key(&self) -> &JobKey {
        &self.job.key
    }
}

impl Listed for StoredJob {
    fn key(&self) -> &JobKey {
        &self.job.key
    }
}

/// How large a page may be.
pub(crate) struct PageLimits<W> {
    jobs: usize,
    /// The most jobs that one page of the store scans.
    scan: usize,
    /// About how many bytes a job adds.
    weigh: W,
}

impl PageLimits<fn(&ListedJob) -> usize> {
    pub(crate) fn of_jobs(jobs: usize) -> Self {
        Self { jobs, scan: SCAN, weigh: |_| 0 }
    }
}

impl<W: Fn(&StoredJob) -> usize> PageLimits<W> {
    /// The limits of a page of whole jobs, which also ends once they have [`MAX_PAGE_BYTES`].
    pub(crate) fn of_whole_jobs(jobs: usize, weigh: W) -> Self {
        Self { jobs, scan: SCAN, weigh }
    }
}

/// Reads pages of the store until the limits are reached, there are no more jobs, or 500 ms are over. `page`
/// reads one page; its arguments are the cursor and the number of jobs to scan. Also returns where
/// the next page begins; `None` if there are no more jobs.
pub(crate) async fn list_jobs<T: Listed, P: Future<Output = Result<Page<T>, StoreError>>>(
    mut page: impl FnMut(Option<Cursor>, usize) -> P,
    from: Option<ListCursor>,
    PageLimits { jobs: limit, scan: max_scan, weigh }: PageLimits<impl Fn(&T) -> usize>,
) -> Result<(Vec<T>, Option<ListCursor>), StoreError> {
    let until = Instant::now() + FILL_FOR;
    let (mut at, mut within) = from.map_or((None, None), |place| (place.at, place.within));
    let (mut items, mut bytes) = (Vec::new(), 0);
    // Jobs that did not fit were found by scanning 1, and are found that way again.
    let mut scan = if within.is_some() { 1 } else { slightly_fewer(limit, max_scan) };
    loop {
        let found = page(at, scan).await?;
        let mut jobs = found.items;
        if let Some(within) = within.take().filter(|within| within.end == found.next) {
            jobs.retain(|job| job.key().locator().0 > within.last);
        }
        let (count, remaining) = (jobs.len(), limit - items.len());
        if count > remaining && scan > 1 {
            scan /= 2;
            if Instant::now() < until || items.is_empty() {
                continue;
            }
        }
        if count > remaining {
            // They fit on the next page, unless they are too many for any page.
            let left = if items.is_empty() {
                ListCursor { at, within: Some(cut(&mut jobs, remaining, found.next)) }
            } else {
                jobs.clear();
                ListCursor { at, within: None }
            };
            items.append(&mut jobs);
            return Ok((items, Some(left)));
        }
        bytes += jobs.iter().map(&weigh).sum::<usize>();
        items.append(&mut jobs);
        let Some(next) = found.next else { return Ok((items, None)) };
        if items.len() == limit || bytes >= MAX_PAGE_BYTES || Instant::now() >= until {
            return Ok((items, Some(next.into())));
        }
        at = Some(next);
        scan = next_scan(scan, count, limit - items.len(), max_scan);
    }
}

/// How many jobs to scan to find at most `wanted`: slightly fewer, since the store scans a few more.
fn slightly_fewer(wanted: usize, max: usize) -> usize {
    (wanted - wanted / 8).clamp(1, max)
}

/// How many jobs to scan next to find at most `wanted`, after `found` of `scan` jobs matched: more if few
/// matched.
fn next_scan(scan: usize, found: usize, wanted: usize, max: usize) -> usize {
    if found < scan / 4 || found == 0 { (scan * 4).min(max) } else { slightly_fewer(wanted, max) }
}

/// Sorts `jobs` by locator, truncates them to this length, and returns the place after the last one.
fn cut<T: Listed>(jobs: &mut Vec<T>, length: usize, end: Option<Cursor>) -> Within {
    jobs.sort_unstable_by_key(|job| job.key().locator().0);
    jobs.truncate(length);
    let last = jobs.last().map(|job| job.key().locator().0).unwrap_or_default();
    Within { end, last }
}

#[cfg(test)]
mod tests;
