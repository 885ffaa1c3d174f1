//! Reads request bodies with limits on their size and duration. A large body must acquire memory
//! from the budget, and then arrive at a rate that fits what it holds. A small one only has a time limit.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody as _};
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http::StatusCode;
use http::header::EXPECT;
use http::request::Parts;
use ringback_core::encoding::without_mark;
use ringback_service::http_server::Peer;
use ringback_wire::Problem;
use tokio::time::{Instant, timeout, timeout_at};

use crate::access::Authenticated;
use crate::error::ApiError;
use crate::limits::{Deadline, MemoryBudget, MemoryPermit, Turn};
use crate::state::Api;

/// How long a body may take to arrive.
const WITHIN: Duration = Duration::from_secs(30);
/// How long the rest of a refused body is read and discarded. A client that is disconnected while it
/// sends often never sees the answer.
const DRAIN_FOR: Duration = Duration::from_secs(2);
/// The most bytes that a body may have without a permit. The number of connections bounds their sum.
const SMALL: usize = 16 * 1024;
/// A large body must bring one of the [`PARTS`] of the memory that it holds in each period of this length.
const PERIOD: Duration = Duration::from_secs(2);
/// The number of parts. A part has at least [`SMALL`] bytes. A body that comes evenly and within its time brings them,
/// also one that holds twice its length.
const PARTS: usize = 30;

/// A body that has arrived completely.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) bytes: Bytes,
    /// Its part of the memory budget.
    pub(crate) permit: MemoryPermit,
    /// When its request must be answered.
    pub(crate) deadline: Deadline,
}

impl Upload {
    /// Waits for the caller's turn to parse this body, so that the large bodies of one tenant do not delay those of
    /// others. `None` at once for a body of up to 16 KiB, or without a root key.
    ///
    /// # Errors
    /// 503 if there is no turn before the deadline, 401 if the caller's key has ended meanwhile.
    pub(super) async fn turn(&self, api: &Api, parts: &Parts) -> Result<Option<Turn>, ApiError> {
        if self.bytes.len() <= SMALL || api.root.is_none() {
            return Ok(None);
        }
        let caller = Authenticated::of(parts);
        let holder = caller.holder(Peer::of_request(parts));
        let turn = self.deadline.bound(api.parses.wait(holder)).await?;
        api.check_standing(&caller).map(|()| Some(turn))
    }
}

/// Reads the body of a request, of up to `limit` bytes, and checks that the caller's key has not ended while the body
/// was arriving.
///
/// # Errors
/// The errors of [`read`], and 401 if the key has ended.
pub(super) async fn of_request(
    request: Request,
    limit: usize,
    api: &Api,
) -> Result<(Parts, Upload), ApiError> {
    let (parts, body) = request.into_parts();
    let upload = read(&parts, body, limit, &api.memory).await?;
    api.check_standing(&Authenticated::of(&parts))?;
    Ok((parts, upload))
}

/// Reads a body of up to `limit` bytes. A byte order mark is left out.
///
/// # Errors
/// 400 if the body ends early or is not in UTF-8, 408 if it is too slow, 413 if it is too large, 503 if the budget has
/// no memory for it before a deadline. Before a 413 or 503, the rest of the body is read for up to 2 s and discarded.
async fn read(parts: &Parts, body: Body, limit: usize, memory: &MemoryBudget) -> Result<Upload, ApiError> {
    let (announced, start) = (announced_length(&body), Instant::now());
    let mut frames = body.into_data_stream();
    if announced.is_some_and(|length| length > limit) {
        // A client that waits for 100 Continue sends nothing that would have to be read, and must not be asked for it.
        if parts.headers.contains_key(EXPECT) {
            return Err(too_large(limit));
        }
        return Err(refuse(frames, too_large(limit)).await);
    }
    let mut rate = Rate { until: start + WITHIN, goal: None, part: SMALL };
    let (mut whole, mut length, mut permit) = (Collected::Nothing, 0, MemoryPermit::default());
    while let Some(frame) = timeout_at(rate.due(), frames.next()).await.map_err(|_| rate.too_slow())? {
        let frame = frame.map_err(|_| Problem::unreadable("the body ended too early"))?;
        length += frame.len();
        if length > limit {
            drop((whole, frame, permit));
            return Err(refuse(frames, too_large(limit)).await);
        }
        if length > SMALL && length > permit.bytes() {
            // A client that does not announce a length could hold it all with a few bytes.
            let room = announced.unwrap_or(limit.min(2 * length));
            let Some(extended) = memory.extend(permit, room).await else {
                drop((whole, frame));
                return Err(refuse(frames, ApiError::busy()).await);
            };
            permit = extended;
            rate.require(permit.bytes());
        }
        if permit.bytes() > 0 {
            rate.update(length);
        }
        whole = whole.and(frame, permit.bytes());
    }
    let bytes = whole.freeze();
    let text = without_mark(&bytes).map_err(|why| Problem::unreadable(why.to_string()))?;
    Ok(Upload { bytes: bytes.slice_ref(text), permit, deadline: Deadline::from_now() })
}

fn announced_length(body: &Body) -> Option<usize> {
    body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX))
}

fn too_large(limit: usize) -> ApiError {
    let detail = format!("the request is too large; at most {limit} bytes are allowed");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Reads and discards the rest of a refused body for up to 2 s, then returns `answer`.
async fn refuse(mut rest: BodyDataStream, answer: ApiError) -> ApiError {
    timeout(DRAIN_FOR, async { while let Some(Ok(_)) = rest.next().await {} }).await.ok();
    answer
}

struct Rate {
    /// When the whole body must have arrived.
    until: Instant,
    /// When a body with a permit must have reached a length, and that length.
    goal: Option<(Instant, usize)>,
    /// How many bytes each period must bring.
    part: usize,
}

impl Rate {
    fn due(&self) -> Instant {
        self.goal.map_or(self.until, |(due, _)| due.min(self.until))
    }

    /// Sets the rate for a body that holds `bytes` of memory from now on. The time in which it waited for the memory
    /// does not count.
    fn require(&mut self, bytes: usize) {
        self.part = (bytes / PARTS).max(SMALL);
        self.goal = None;
    }

    /// Sets the next goal when a body of `length` bytes has reached the last one.
    fn update(&mut self, length: usize) {
        if self.goal.is_none_or(|(_, goal)| length >= goal) {
            self.goal = Some((Instant::now() + PERIOD, length + self.part));
        }
    }

    fn too_slow(&self) -> ApiError {
        let detail = if Instant::now() < self.until {
            let (part, period) = (self.part, PERIOD.as_secs());
            format!("the body arrived too slowly: a large body must send {part} bytes every {period} s")
        } else {
            format!("the body did not arrive within {} s", WITHIN.as_secs())
        };
        ApiError::new(StatusCode::REQUEST_TIMEOUT, detail)
    }
}

/// The frames of a body so far. A single frame, which most bodies are, is not copied.
enum Collected {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl Collected {
    /// Appends a frame. `expected` is the length for which there is memory, to reserve capacity.
    fn and(self, frame: Bytes, expected: usize) -> Self {
        match self {
            Self::Nothing => Self::One(frame),
            Self::One(first) => {
                let all = BytesMut::with_capacity(expected.max(2 * (first.len() + frame.len())));
                Self::Many(all).and(first, expected).and(frame, expected)
            }
            Self::Many(mut all) => {
                all.reserve(frame.len().max(expected.saturating_sub(all.len())));
                all.extend_from_slice(&frame);
                Self::Many(all)
            }
        }
    }

    fn freeze(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes.freeze(),
        }
    }
}

#[cfg(test)]
mod tests;
