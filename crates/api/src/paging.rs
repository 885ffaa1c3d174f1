//! A page of the listing, put together from pages of the store. The store looks at so many
//! jobs at a time and answers those that are wanted: none, or more than it was asked to look
//! at where jobs lie close together. What does not fit on a page is left for the next one.

use std::fmt::{self, Display};
use std::future::Future;
use std::str::FromStr;
use std::time::Duration;

use ringback_core::contract::{Cursor, Filter, InvalidCursor, MAX_PAGE, Page, StoreError};
use ringback_core::job::Job;
use ringback_store::Store;
use tokio::time::Instant;

/// A page that is not full by then is answered as it is.
const FILL_FOR: Duration = Duration::from_millis(500);

/// Where a page begins: at a place of the store, or within the jobs that lie close behind one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// `None`: at the beginning.
    at: Option<Cursor>,
    within: Option<Within>,
}

/// Among jobs that the store answers together and no page has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Within {
    /// Where they ended. Where they end elsewhere by now they are others, and none is left out.
    end: Option<Cursor>,
    /// In the order of these they were given, up to this one.
    last: Locator,
}

type Locator = [u8; 12];

impl From<Cursor> for Place {
    fn from(at: Cursor) -> Self {
        Self { at: Some(at), within: None }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |cursor: &Option<Cursor>| cursor.map(|cursor| cursor.to_string()).unwrap_or_default();
        f.write_str(&text(&self.at))?;
        let Some(Within { end, last }) = &self.within else { return Ok(()) };
        write!(f, ".{}.", text(end))?;
        last.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Place {
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

/// Reads on from a place until there are `limit` jobs, there are no more, or it has taken long.
///
/// # Errors
/// The store's; what was read before is left for another try from the same place.
pub(crate) async fn fill(
    store: &Store,
    filter: &Filter,
    from: Option<Place>,
    limit: usize,
) -> Result<(Vec<Job>, Option<Place>), StoreError> {
    fill_by(|at, look| store.page(filter, at, look), from, limit).await
}

async fn fill_by<P: Future<Output = Result<Page<Job>, StoreError>>>(
    mut page: impl FnMut(Option<Cursor>, usize) -> P,
    from: Option<Place>,
    limit: usize,
) -> Result<(Vec<Job>, Option<Place>), StoreError> {
    let until = Instant::now() + FILL_FOR;
    let (mut at, mut within) = from.map_or((None, None), |place| (place.at, place.within));
    let mut items = Vec::new();
    // What did not fit was found by the smallest step, and is found by it again.
    let mut look = if within.is_some() { 1 } else { a_little_less(limit) };
    loop {
        let found = page(at, look).await?;
        let mut jobs = found.items;
        if let Some(within) = within.take().filter(|within| within.end == found.next) {
            jobs.retain(|job| job.key.locator().0 > within.last);
        }
        let (count, room) = (jobs.len(), limit - items.len());
        if count > room && look > 1 {
            look /= 2;
            if Instant::now() < until || items.is_empty() {
                continue;
            }
        }
        if count > room {
            // Another page has room for them, unless they are too many for any.
            let left = if items.is_empty() {
                Place { at, within: Some(cut(&mut jobs, room, found.next)) }
            } else {
                jobs.clear();
                Place { at, within: None }
            };
            items.append(&mut jobs);
            return Ok((items, Some(left)));
        }
        items.append(&mut jobs);
        let Some(next) = found.next else { return Ok((items, None)) };
        if items.len() == limit || Instant::now() >= until {
            return Ok((items, Some(next.into())));
        }
        at = Some(next);
        look = next_look(look, count, limit - items.len());
    }
}

/// How many to look at so that not more are found: the store looks at a few more.
fn a_little_less(room: usize) -> usize {
    (room - room / 8).clamp(1, MAX_PAGE)
}

/// How many to look at after so many of `look` were wanted: more where few are.
fn next_look(look: usize, found: usize, room: usize) -> usize {
    if found < look / 4 || found == 0 { (look * 4).min(MAX_PAGE) } else { a_little_less(room) }
}

/// Leaves `room` jobs, and says which ones those are.
fn cut(jobs: &mut Vec<Job>, room: usize, end: Option<Cursor>) -> Within {
    jobs.sort_unstable_by_key(|job| job.key.locator().0);
    jobs.truncate(room);
    let last = jobs.last().map(|job| job.key.locator().0).unwrap_or_default();
    Within { end, last }
}

#[cfg(test)]
mod tests;
