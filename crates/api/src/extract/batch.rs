//! The bodies of batches and imports: a JSON array or NDJSON, taken apart into the bytes of
//! their items.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::StatusCode;
use ringback_core::wire::{MAX_IMPORT_BYTES, MAX_IMPORT_LINES, Problem};
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use super::body::{Upload, read};
use super::media_type;
use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::room::Share;
use crate::state::Api;

/// The largest batch, in bytes.
pub(crate) const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The most items of a batch.
pub(crate) const MAX_ITEMS: usize = 10_000;

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

/// Bodies up to this size are taken apart where they are; larger ones beside the requests,
/// which would wait for it.
const AT_ONCE: usize = 64 * 1024;

/// A batch, taken apart.
pub(crate) struct BatchBody(pub(crate) Pieces);

/// An import, taken apart; its items are numbered as its lines are, from 1, blank ones counted.
pub(crate) struct ImportBody(pub(crate) Pieces);

/// A large body, taken apart.
pub(crate) struct Pieces {
    /// What each item was written as, in order, with its number.
    pub(crate) items: Vec<(usize, Bytes)>,
    pub(crate) share: Share,
    pub(crate) deadline: Deadline,
    /// Its turn, for as long as it is worked on.
    pub(crate) turn: OwnedSemaphorePermit,
}

impl FromRequest<Arc<Api>> for BatchBody {
    type Rejection = ApiError;

    /// # Errors
    /// Those of the media type and of reading; a 503 problem when too many batches are being worked
    /// on, 400 for what is no JSON array, 413 for more than [`MAX_ITEMS`].
    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        let format = media_type(request.headers(), &[JSON, NDJSON])?;
        pieces(request, api, MAX_BYTES, move |bytes| items(format, bytes)).await.map(Self)
    }
}

impl FromRequest<Arc<Api>> for ImportBody {
    type Rejection = ApiError;

    /// # Errors
    /// As of a [`BatchBody`], but that there is nothing for a 400; 413 for more than
    /// [`MAX_IMPORT_LINES`].
    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        media_type(request.headers(), &[NDJSON])?;
        pieces(request, api, MAX_IMPORT_BYTES, numbered_lines).await.map(Self)
    }
}

/// Reads a body and takes it apart.
async fn pieces<F>(request: Request, api: &Api, limit: usize, split: F) -> Result<Pieces, ApiError>
where
    F: FnOnce(&Bytes) -> Result<Vec<(usize, Bytes)>, Problem> + Send + 'static,
{
    let Upload { bytes, share, deadline } = read(request.into_body(), limit, &api.room).await?;
    let Ok(Ok(turn)) = deadline.bound(Arc::clone(&api.batches).acquire_owned()).await else {
        return Err(ApiError::busy());
    };
    let items = if bytes.len() <= AT_ONCE {
        split(&bytes)
    } else {
        spawn_blocking(move || split(&bytes)).await.map_err(|died| {
            // Without a panic it was the end of the process that stopped it.
            died.try_into_panic().map_or_else(|_| ApiError::busy(), |panic| resume_unwind(panic))
        })?
    };
    Ok(Pieces { items: items?, share, deadline, turn })
}

fn items(format: &'static str, bytes: &Bytes) -> Result<Vec<(usize, Bytes)>, Problem> {
    let (items, count) = match format {
        NDJSON => {
            let mut lines = lines(bytes).map(|(_, line)| line);
            let first: Vec<_> = lines.by_ref().take(MAX_ITEMS).collect();
            let count = first.len() + lines.count();
            (first, count)
        }
        _ => array(bytes)?,
    };
    at_most(MAX_ITEMS, count, "items")?;
    Ok(items.into_iter().map(|item| bytes.slice_ref(item)).enumerate().collect())
}

fn numbered_lines(bytes: &Bytes) -> Result<Vec<(usize, Bytes)>, Problem> {
    let mut lines = lines(bytes).map(|(number, line)| (number, bytes.slice_ref(line)));
    let first: Vec<_> = lines.by_ref().take(MAX_IMPORT_LINES).collect();
    at_most(MAX_IMPORT_LINES, first.len() + lines.count(), "lines")?;
    Ok(first)
}

fn at_most(most: usize, count: usize, what: &str) -> Result<(), Problem> {
    if count > most {
        let detail = format!("{count} {what}; at most {most} are allowed");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    Ok(())
}

/// Lines that are not blank, each with its number from 1.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let all = (1..).zip(bytes.split(|b| *b == b'\n').map(<[u8]>::trim_ascii));
    all.filter(|(_, line)| !line.is_empty())
}

/// The items of a JSON array, and how many there are.
fn array(bytes: &[u8]) -> Result<(Vec<&[u8]>, usize), Problem> {
    let text = std::str::from_utf8(bytes).map_err(|e| Problem::unreadable(format!("not UTF-8: {e}")))?;
    let Items { first, count } =
        serde_json::from_str(text).map_err(|e| Problem::unreadable(format!("not a JSON array: {e}")))?;
    Ok((first.into_iter().map(|item| item.get().as_bytes()).collect(), count))
}

/// An array: its items up to the most that are allowed, and the count of all.
struct Items<'a> {
    first: Vec<&'a RawValue>,
    count: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array;
        impl<'de> Visitor<'de> for Array {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
                let mut first = Vec::new();
                while first.len() < MAX_ITEMS
                    && let Some(item) = seq.next_element()?
                {
                    first.push(item);
                }
                let mut count = first.len();
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Items { first, count })
            }
        }
        deserializer.deserialize_seq(Array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'a>((items, _): &(Vec<&'a [u8]>, usize)) -> Vec<&'a str> {
        items.iter().map(|item| std::str::from_utf8(item).unwrap()).collect()
    }

    #[test]
    fn blank_lines_are_skipped_but_counted_and_broken_ones_are_items() {
        let bytes = Bytes::from_static(b"{\"a\":1}\r\n\n  \t\n not json \n{\"b\":2}");
        let found = numbered_lines(&bytes).unwrap();
        let expected = [(1, "{\"a\":1}"), (4, "not json"), (5, "{\"b\":2}")];
        assert_eq!(found, expected.map(|(number, line)| (number, Bytes::from_static(line.as_bytes()))));
        let numbers = |items: Vec<(usize, Bytes)>| items.into_iter().map(|(n, _)| n).collect::<Vec<_>>();
        assert_eq!(numbers(items(NDJSON, &bytes).unwrap()), [0, 1, 2]);
    }

    #[test]
    fn items_of_an_array_are_kept_as_they_were_written() {
        let found = array(b" [ {\"a\" : 1.0e5} ,5, \"x\"] ").unwrap();
        assert_eq!(texts(&found), ["{\"a\" : 1.0e5}", "5", "\"x\""]);
    }

    #[test]
    fn what_is_no_array_is_refused_as_a_whole() {
        for bad in ["", "{}", "5", "[1", "[1] x", "[1,]"] {
            assert_eq!(array(bad.as_bytes()).unwrap_err().status, 400, "{bad}");
        }
        assert_eq!(array(b"[\"\xff\"]").unwrap_err().status, 400);
    }

    #[test]
    fn items_beyond_the_most_are_counted_but_not_kept() {
        let many = format!("[{}1]", "1,".repeat(MAX_ITEMS + 4));
        let (items, count) = array(many.as_bytes()).unwrap();
        assert_eq!((items.len(), count), (MAX_ITEMS, MAX_ITEMS + 5));
    }

    #[test]
    fn lines_beyond_the_most_are_too_many_and_blank_ones_do_not_count() {
        let many = Bytes::from("1\n\n".repeat(MAX_ITEMS + 5));
        for refusal in [items(NDJSON, &many), numbered_lines(&many)] {
            let refusal = refusal.unwrap_err();
            assert!(refusal.status == 413 && refusal.detail.starts_with("10005 "), "{refusal:?}");
        }
        let most = many.slice(..many.len() - 3 * 5);
        assert_eq!(numbered_lines(&most).unwrap().len(), MAX_IMPORT_LINES);
        assert_eq!(items(NDJSON, &most).unwrap().len(), MAX_ITEMS);
    }
}
