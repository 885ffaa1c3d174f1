//! Bodies of batches and imports: a JSON array or NDJSON, split into the bytes of their items.

use std::panic::resume_unwind;
use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::StatusCode;
use ringback_core::encoding::json_error;
use ringback_wire::{FirstItems, MAX_IMPORT_BYTES, MAX_IMPORT_LINES, Problem};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use super::body::{Upload, of_request};
use super::media_type;
use crate::error::ApiError;
use crate::limits::{Deadline, MemoryPermit};
use crate::state::Api;

/// The largest batch, in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;
pub(crate) const MAX_ITEMS: usize = 10_000;

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

/// The largest body that is split in the request's task. A larger one is split on a blocking thread,
/// so that other requests do not wait.
const MAX_INLINE: usize = 64 * 1024;

/// The items of a batch, numbered from 0.
pub(crate) struct BatchBody(pub(crate) Items);

/// The items of an import, numbered by line from 1. Blank lines count.
pub(crate) struct ImportBody(pub(crate) Items);

/// The unparsed items of a body.
pub(crate) struct Items {
    /// The bytes of each item with its number, in order.
    pub(crate) items: Vec<(usize, Bytes)>,
    pub(crate) permit: MemoryPermit,
    pub(crate) deadline: Deadline,
    /// A place among the batches that may be processed at once.
    pub(crate) turn: OwnedSemaphorePermit,
}

impl FromRequest<Arc<Api>> for BatchBody {
    type Rejection = ApiError;

    /// # Errors
    /// 415 for another media type, the errors of [`of_request`], 503 if too many batches are processed until the
    /// deadline, 400 if a body of JSON is not an array, 413 for more than [`MAX_ITEMS`].
    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        let format = media_type::check(request.headers(), &[JSON, NDJSON])?;
        split(request, api, MAX_BYTES, move |bytes| items(format, bytes)).await.map(Self)
    }
}

impl FromRequest<Arc<Api>> for ImportBody {
    type Rejection = ApiError;

    /// # Errors
    /// The errors of a [`BatchBody`] in NDJSON, and 413 for more than [`MAX_IMPORT_LINES`] lines.
    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, ApiError> {
        media_type::check(request.headers(), &[NDJSON])?;
        split(request, api, MAX_IMPORT_BYTES, numbered_lines).await.map(Self)
    }
}

async fn split<F>(request: Request, api: &Api, limit: usize, split: F) -> Result<Items, ApiError>
where
    F: FnOnce(&Bytes) -> Result<Vec<(usize, Bytes)>, Problem> + Send + 'static,
{
    let (_, Upload { bytes, permit, deadline }) = of_request(request, limit, api).await?;
    let Ok(Ok(turn)) = deadline.bound(Arc::clone(&api.batches).acquire_owned()).await else {
        return Err(ApiError::busy());
    };
    let items = if bytes.len() <= MAX_INLINE {
        split(&bytes)
    } else {
        spawn_blocking(move || split(&bytes)).await.map_err(|died| {
            // Without a panic, the runtime is shutting down.
            died.try_into_panic().map_or_else(|_| ApiError::busy(), |panic| resume_unwind(panic))
        })?
    };
    Ok(Items { items: items?, permit, deadline, turn })
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

fn at_most(max: usize, count: usize, what: &str) -> Result<(), Problem> {
    if count > max {
        let detail = format!("{count} {what}; at most {max} are allowed");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    Ok(())
}

/// The lines that are not blank, with their numbers from 1.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let all = (1..).zip(bytes.split(|b| *b == b'\n').map(<[u8]>::trim_ascii));
    all.filter(|(_, line)| !line.is_empty())
}

/// The first items of a JSON array, up to [`MAX_ITEMS`], and the number of all; 400 if it is not a JSON array.
fn array(bytes: &[u8]) -> Result<(Vec<&[u8]>, usize), Problem> {
    let text = std::str::from_utf8(bytes).map_err(|e| Problem::unreadable(format!("not UTF-8: {e}")))?;
    let FirstItems::<MAX_ITEMS> { first, count } = serde_json::from_str(text)
        .map_err(|e| Problem::unreadable(format!("not a JSON array: {}", json_error(text, &e))))?;
    Ok((first.into_iter().map(|item| item.get().as_bytes()).collect(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'a>((items, _): &(Vec<&'a [u8]>, usize)) -> Vec<&'a str> {
        items.iter().map(|item| std::str::from_utf8(item).unwrap()).collect()
    }

    #[test]
    fn blank_lines_are_skipped_but_numbered_and_invalid_ones_are_items() {
        let bytes = Bytes::from_static(b"{\"a\":1}\r\n\n  \t\n not json \n{\"b\":2}");
        let found = numbered_lines(&bytes).unwrap();
        let expected = [(1, "{\"a\":1}"), (4, "not json"), (5, "{\"b\":2}")];
        assert_eq!(found, expected.map(|(number, line)| (number, Bytes::from_static(line.as_bytes()))));
        let numbers = |items: Vec<(usize, Bytes)>| items.into_iter().map(|(n, _)| n).collect::<Vec<_>>();
        assert_eq!(numbers(items(NDJSON, &bytes).unwrap()), [0, 1, 2]);
    }

    #[test]
    fn items_of_an_array_keep_their_bytes() {
        let found = array(b" [ {\"a\" : 1.0e5} ,5, \"x\"] ").unwrap();
        assert_eq!(texts(&found), ["{\"a\" : 1.0e5}", "5", "\"x\""]);
    }

    #[test]
    fn a_body_that_is_no_array_is_refused() {
        for bad in ["", "{}", "5", "[1", "[1] x", "[1,]"] {
            assert_eq!(array(bad.as_bytes()).unwrap_err().status, 400, "{bad}");
        }
        assert_eq!(array(b"[\"\xff\"]").unwrap_err().status, 400);
    }

    #[test]
    fn items_beyond_the_limit_are_counted_but_not_kept() {
        let many = format!("[{}1]", "1,".repeat(MAX_ITEMS + 4));
        let (items, count) = array(many.as_bytes()).unwrap();
        assert_eq!((items.len(), count), (MAX_ITEMS, MAX_ITEMS + 5));
    }

    #[test]
    fn blank_lines_do_not_count_towards_the_limit() {
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
