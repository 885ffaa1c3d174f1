//! Bodies as they arrive: not too large, not too slow, and no more of them at a time than
//! there is room for. A client that sends slowly holds no more than it has sent, until it has
//! sent so much that it must keep up a pace.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody as _};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http::StatusCode;
use ringback_core::wire::Problem;
use tokio::time::{Instant, timeout, timeout_at};

use crate::deadline::Deadline;
use crate::error::ApiError;
use crate::room::{Room, Share};

/// How long a body may take to arrive.
const WITHIN: Duration = Duration::from_secs(30);
/// A body that is refused is read on for so long, since a sender that is cut off in the
/// middle often never sees the answer.
const DRAIN_FOR: Duration = Duration::from_secs(2);
/// So many bytes need no room: there are only so many connections.
const SMALL: usize = 16 * 1024;
/// A body that holds room must bring a piece of itself in each of these.
const STRETCH: Duration = Duration::from_secs(2);
/// How large that piece is: this share of the body, and not less than [`SMALL`].
const PIECE: usize = 30;

/// A body that is there as a whole.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) bytes: Bytes,
    /// What it takes of the room.
    pub(crate) share: Share,
    /// When its request is to be answered.
    pub(crate) deadline: Deadline,
}

/// Reads a body to its end, in time and up to `limit` bytes.
pub(super) async fn read(body: Body, limit: usize, room: &Room) -> Result<Upload, ApiError> {
    let (told, start) = (length_told(&body), Instant::now());
    let mut frames = body.into_data_stream();
    if told.is_some_and(|told| told > limit) {
        return Err(refuse(frames, too_large(limit)).await);
    }
    let mut pace = Pace { until: start + WITHIN, next: None, piece: (told.unwrap_or(0) / PIECE).max(SMALL) };
    let (mut whole, mut length, mut share) = (Collected::Nothing, 0, None);
    let most = told.unwrap_or(limit);
    while let Some(frame) = timeout_at(pace.due(), frames.next()).await.map_err(|_| pace.too_slow())? {
        let frame = frame.map_err(|_| Problem::unreadable("the body ended too early"))?;
        length += frame.len();
        if length > limit {
            drop((whole, frame, share));
            return Err(refuse(frames, too_large(limit)).await);
        }
        if share.is_none() && length > SMALL {
            share = room.take(most).await;
            if share.is_none() {
                drop((whole, frame));
                return Err(refuse(frames, ApiError::busy()).await);
            }
        }
        let expected = share.as_ref().map_or(0, |_| most);
        if expected > 0 {
            pace.keep(length);
        }
        whole = whole.and(frame, expected);
    }
    Ok(Upload { bytes: whole.freeze(), share: share.unwrap_or_default(), deadline: Deadline::from_now() })
}

/// How long a body is, where its sender says so.
fn length_told(body: &Body) -> Option<usize> {
    body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX))
}

fn too_large(limit: usize) -> ApiError {
    let detail = format!("the request is too large; at most {limit} bytes are allowed");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Lets the sender come to its end, whether all of it comes or not: the answer is the same.
async fn refuse(mut rest: BodyDataStream, answer: ApiError) -> ApiError {
    timeout(DRAIN_FOR, async { while let Some(Ok(_)) = rest.next().await {} }).await.ok();
    answer
}

/// How fast a body must come.
struct Pace {
    /// When all of it must be there.
    until: Instant,
    /// When it must have which length, once it holds room.
    next: Option<(Instant, usize)>,
    piece: usize,
}

impl Pace {
    fn due(&self) -> Instant {
        self.next.map_or(self.until, |(due, _)| due.min(self.until))
    }

    /// So much is there.
    fn keep(&mut self, length: usize) {
        if self.next.is_none_or(|(_, goal)| length >= goal) {
            self.next = Some((Instant::now() + STRETCH, length + self.piece));
        }
    }

    fn too_slow(&self) -> ApiError {
        let detail = if Instant::now() < self.until {
            let (piece, stretch) = (self.piece, STRETCH.as_secs());
            format!("the body came too slowly: a large one must bring {piece} bytes every {stretch} s")
        } else {
            format!("the body did not arrive within {} s", WITHIN.as_secs())
        };
        ApiError::new(StatusCode::REQUEST_TIMEOUT, detail)
    }
}

/// A body so far. One that comes in a single frame, as most do, is not copied.
enum Collected {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl Collected {
    /// With one more frame; `expected` is how long all of it is thought to become.
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
