//! `AnswerMemory`: limits, by caller, how much memory large answers hold until their clients have read them. Without
//! that, a client that asks for much and reads nothing could make the process keep an answer for each of its requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::HttpBody as _;
use axum::response::{IntoResponse as _, Response};
use ringback_core::store_types::tenant_limit;
use ringback_service::http_server::{Holder, hold_until_taken};

use crate::error::ApiError;

/// The most bytes of large answers in all. One caller has at most half of what the others leave.
const MAX_BYTES: u64 = 128 * 1024 * 1024;
/// Smaller answers do not count: they fit into the buffers of the connection.
const SMALL: u64 = 64 * 1024;

/// The memory. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct AnswerMemory(Arc<Mutex<Totals>>);

#[derive(Default)]
struct Totals {
    all: u64,
    by_holder: HashMap<Holder, u64>,
}

/// What an answer takes, until it is dropped.
struct AnswerShare {
    memory: AnswerMemory,
    holder: Holder,
    bytes: u64,
}

impl AnswerMemory {
    /// Checks, before a call that changes something, that the unread answers of its caller are within the caller's
    /// share.
    ///
    /// # Errors
    /// 503 if they have used it up.
    pub(crate) fn check(&self, holder: impl FnOnce() -> Holder) -> Result<(), ApiError> {
        let taken = self.lock();
        // Nearly always nothing waits.
        if taken.all == 0 {
            return Ok(());
        }
        let (own, limit) = taken.share_of(&holder());
        if own < limit { Ok(()) } else { Err(refusal(own)) }
    }

    /// Counts an answer of more than 64 KiB until its client has taken it. If it exceeds the caller's share, the answer
    /// of a read is replaced by a 503; that of a change is not, since the change is done.
    pub(crate) fn hold(&self, answer: Response, holder: impl FnOnce() -> Holder, is_read: bool) -> Response {
        let Some(bytes) = answer.body().size_hint().exact().filter(|bytes| *bytes > SMALL) else {
            return answer;
        };
        match self.take(holder(), bytes, is_read) {
            Ok(held) => answer.map(|body| hold_until_taken(body, held)),
            Err(refusal) => refusal.into_response(),
        }
    }

    fn take(&self, holder: Holder, bytes: u64, is_limited: bool) -> Result<AnswerShare, ApiError> {
        let mut taken = self.lock();
        let (own, limit) = taken.share_of(&holder);
        if is_limited && own + bytes > limit {
            return Err(refusal(own));
        }
        taken.all += bytes;
        *taken.by_holder.entry(holder.clone()).or_default() += bytes;
        drop(taken);
        Ok(AnswerShare { memory: self.clone(), holder, bytes })
    }

    fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Totals {
    /// How many bytes the unread answers of a caller have, and how many they may have.
    fn share_of(&self, holder: &Holder) -> (u64, u64) {
        let own = self.by_holder.get(holder).copied().unwrap_or_default();
        (own, tenant_limit(u32::MAX, MAX_BYTES, self.all, own))
    }
}

impl Drop for AnswerShare {
    fn drop(&mut self) {
        let mut taken = self.memory.lock();
        taken.all -= self.bytes;
        if let Some(own) = taken.by_holder.get_mut(&self.holder) {
            *own -= self.bytes;
            if *own == 0 {
                taken.by_holder.remove(&self.holder);
            }
        }
    }
}

fn refusal(own: u64) -> ApiError {
    ApiError::retry_later(format_args!(
        "{} MiB of answers to your tenant, or to your address, are not read yet, which is all that one may have",
        own / (1024 * 1024)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: usize = 8 * 1024 * 1024;

    fn of(name: &str) -> impl FnOnce() -> Holder {
        let name = name.into();
        move || Holder::Name(name)
    }

    fn answer(bytes: usize) -> Response {
        vec![b'x'; bytes].into_response()
    }

    #[tokio::test]
    async fn who_reads_nothing_leaves_half_to_the_others() {
        let memory = AnswerMemory::default();
        let read = |name: &str| memory.hold(answer(PART), of(name), true);
        let mut held: Vec<_> = (0..8).map(|_| read("a")).collect();
        assert!(held.iter().all(|answer| answer.status() == 200));
        assert_eq!(read("a").status(), 503);
        assert!(memory.check(of("a")).is_err() && memory.check(of("b")).is_ok());
        let others: Vec<_> = (0..4).map(|_| read("b")).collect();
        assert!(others.iter().all(|answer| answer.status() == 200));
        assert_eq!(read("b").status(), 503);
        // What has been done is answered, and counts.
        held.push(memory.hold(answer(PART), of("a"), false));
        assert_eq!((held[8].status().as_u16(), memory.lock().all), (200, 13 * PART as u64));
        // One that is taken makes room, and only then.
        let body = axum::body::to_bytes(held.remove(0).into_body(), usize::MAX).await.unwrap();
        assert_eq!((body.len(), memory.lock().all), (PART, 12 * PART as u64));
        drop((held, others));
        assert!(memory.lock().all == 0 && memory.lock().by_holder.is_empty());
    }

    #[test]
    fn small_answers_do_not_count() {
        let memory = AnswerMemory::default();
        let small: Vec<_> = (0..10_000).map(|_| memory.hold(answer(1024), of("a"), true)).collect();
        assert_eq!((small.len(), memory.lock().all), (10_000, 0));
    }
}
