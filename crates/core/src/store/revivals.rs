//! Revivals: calls that revive many dead jobs at a given rate. What each is to do is written
//! down; whoever holds one works on it, page by page, and somebody else goes on when its holder
//! is not heard of any more. How far it is, is counted where the jobs are, in the call that
//! revives them.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};

use super::{Backend, DeadFilter, DeadPlace, Shard, Store, StoreError, Token};
use crate::clock::Timestamp;

/// So many revivals may go on at once.
pub const MOST_REVIVALS: usize = 16;
/// So long a revival that has ended is remembered.
pub(super) const KEEP_ENDED: Duration = Duration::from_secs(24 * 3600);
/// And so many of them at most.
pub(super) const MOST_ENDED: usize = 200;
/// The fastest, in jobs a second.
pub const MAX_RATE: u32 = 100_000;

/// What a revival is known by: the token of all that it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RevivalId(pub(super) [u8; 8]);

impl From<Token> for RevivalId {
    fn from(Token(token): Token) -> Self {
        Self(token)
    }
}

impl Display for RevivalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What is no revival's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a revival")]
pub struct NoRevivalId;

impl FromStr for RevivalId {
    type Err = NoRevivalId;

    fn from_str(text: &str) -> Result<Self, NoRevivalId> {
        let is_id = text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_id).ok_or(NoRevivalId)?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// Whether a revival goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevivalState {
    /// There may be more to revive.
    Running,
    /// All that were to be revived are.
    Done,
    /// It was stopped before.
    Stopped,
}

impl RevivalState {
    /// The word used in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
        }
    }
}

/// A revival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revival {
    /// What it is known by.
    pub id: RevivalId,
    /// Which jobs, of those that were dead when it began.
    pub filter: DeadFilter,
    /// Jobs a second.
    pub rate: u32,
    /// When it began, by the store's clock.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Whether it goes on.
    pub state: RevivalState,
    /// How many jobs it has revived.
    pub revived: u64,
}

impl Revival {
    /// Which jobs are to be revived: those that were dead when it began.
    pub fn wanted(&self) -> DeadFilter {
        let ends = self.started.plus(Duration::from_millis(1));
        let before = self.filter.before.map_or(ends, |before| before.min(ends));
        DeadFilter { before: Some(before), ..self.filter.clone() }
    }
}

/// What a revival is to do, as it is kept; times are in ms. Packed with postcard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Work {
    topic: String,
    reason: Option<String>,
    after: Option<u64>,
    before: Option<u64>,
    pub(super) rate: u32,
}

impl Work {
    pub(super) fn new(filter: &DeadFilter, rate: u32) -> Self {
        Self {
            topic: filter.topic.to_string(),
            reason: filter.reason.clone(),
            after: filter.after.map(Timestamp::as_millis),
            before: filter.before.map(Timestamp::as_millis),
            rate,
        }
    }

    pub(super) fn filter(self) -> Result<DeadFilter, StoreError> {
        Ok(DeadFilter {
            topic: self.topic.parse().map_err(|_| StoreError::Unreadable("a revival"))?,
            reason: self.reason,
            after: self.after.map(Timestamp::from_millis),
            before: self.before.map(Timestamp::from_millis),
        })
    }
}

/// What a call to begin a revival came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It goes on, begun now or by the same token before.
    Revival(Revival),
    /// Too many go on already: [`MOST_REVIVALS`].
    TooMany,
}

/// Who works on a revival. Random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder(pub [u8; 8]);

/// What a call for work came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// This one is to be worked on.
    Revival(Revival),
    /// All are worked on; when the first of them is free, unless its holder is heard of.
    Later(Duration),
    /// None goes on.
    Nothing,
}

/// What became of the jobs that were to be revived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revived {
    /// So many were dead since then still, and are ready.
    Jobs(u64),
    /// The revival is over: nothing was done.
    Over,
}

/// A revival as it is kept; `None`: how many it has revived is to be asked of the shards.
pub(super) type Kept = (Revival, Option<u64>);

impl Store {
    /// Begins to revive many jobs. Somebody has to work on it: a carrier does.
    ///
    /// # Errors
    /// Any [`StoreError`]; asking again with the same token tells whether it began.
    pub async fn begin_revival(
        &self,
        token: Token,
        filter: &DeadFilter,
        rate: u32,
    ) -> Result<Begun, StoreError> {
        let kept = match &self.backend {
            Backend::Redis(store) => store.begin_revival(token.into(), filter, rate).await?,
            Backend::Embedded(store) => store.begin_revival(token.into(), filter, rate).await?,
        };
        match kept {
            None => Ok(Begun::TooMany),
            Some(kept) => self.counted(kept).await.map(Begun::Revival),
        }
    }

    /// The revivals that go on, and those that ended not long ago; the last one first.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn revivals(&self) -> Result<Vec<Revival>, StoreError> {
        let kept = self.kept(None).await?;
        let mut all = try_join_all(kept.into_iter().map(|kept| self.counted(kept))).await?;
        all.sort_unstable_by_key(|revival| (std::cmp::Reverse(revival.started), revival.id));
        Ok(all)
    }

    /// A revival, and how far it is.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn revival(&self, id: RevivalId) -> Result<Option<Revival>, StoreError> {
        match self.kept(Some(id)).await?.pop() {
            None => Ok(None),
            Some(kept) => self.counted(kept).await.map(Some),
        }
    }

    async fn kept(&self, id: Option<RevivalId>) -> Result<Vec<Kept>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.revivals(id).await,
            Backend::Embedded(store) => store.revivals(id).await,
        }
    }

    /// Stops a revival: it revives no more jobs. One that has ended stays as it is.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn stop_revival(&self, id: RevivalId) -> Result<Option<Revival>, StoreError> {
        self.end_revival(id, None, RevivalState::Stopped).await
    }

    /// Takes a revival that nobody works on, for so long.
    ///
    /// # Errors
    /// Any [`StoreError`]. What was taken without an answer is free again after that time.
    pub async fn take_revival(&self, holder: Holder, ttl: Duration) -> Result<Taken, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.take_revival(holder, ttl).await,
            Backend::Embedded(store) => store.take_revival(holder, ttl).await,
        }
    }

    /// Works on for so long; zero gives it back. False when it is over, or another's.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn keep_revival(
        &self,
        id: RevivalId,
        holder: Holder,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.keep_revival(id, holder, ttl).await,
            Backend::Embedded(store) => store.keep_revival(id, holder, ttl).await,
        }
    }

    /// Its holder is done with it.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn finish_revival(&self, id: RevivalId, holder: Holder) -> Result<(), StoreError> {
        self.end_revival(id, Some(holder), RevivalState::Done).await.map(drop)
    }

    /// revive, many at a time: dead → ready, where they are dead since then still and this
    /// revival has not revived them before. At most [`MAX_DEAD`](super::MAX_DEAD), of one shard.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn revive_many(
        &self,
        shard: Shard,
        id: RevivalId,
        places: &[DeadPlace],
    ) -> Result<Revived, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.revive_many(shard, id, places).await,
            Backend::Embedded(store) => store.revive_many(shard, id, places).await,
        }
    }

    /// Ends it, then keeps the shards from reviving more, and then writes down how many it were.
    /// Of one that is done no shard has any left, so they are asked before.
    async fn end_revival(
        &self,
        id: RevivalId,
        holder: Option<Holder>,
        state: RevivalState,
    ) -> Result<Option<Revival>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => {
                let end = |total| store.end_revival(id, holder, state, total);
                let close = || async {
                    let closed = try_join_all(self.shards().map(|shard| store.close_revival(shard, id)));
                    Ok::<u64, StoreError>(closed.await?.into_iter().sum())
                };
                if state == RevivalState::Done {
                    let sum = close().await?;
                    return Ok(end(Some(sum)).await?.map(counted_as(sum)));
                }
                let Some((revival, total)) = end(None).await? else { return Ok(None) };
                if total.is_some() || revival.state == RevivalState::Running {
                    return self.counted((revival, total)).await.map(Some);
                }
                let sum = close().await?;
                Ok(end(Some(sum)).await?.map(counted_as(sum)))
            }
            Backend::Embedded(store) => {
                let kept = store.end_revival(id, holder, state).await?;
                Ok(kept.map(|(revival, _)| revival))
            }
        }
    }

    /// With how many it has revived so far.
    async fn counted(&self, (revival, total): Kept) -> Result<Revival, StoreError> {
        let revived = match (&self.backend, total) {
            (_, Some(total)) => total,
            (Backend::Redis(store), None) => {
                let looked = self.shards().map(|shard| store.revived(shard, revival.id));
                try_join_all(looked).await?.into_iter().sum()
            }
            (Backend::Embedded(_), None) => revival.revived,
        };
        Ok(Revival { revived, ..revival })
    }
}

fn counted_as(sum: u64) -> impl FnOnce(Kept) -> Revival {
    move |(revival, total)| Revival { revived: total.unwrap_or(sum), ..revival }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_being_written_down() {
        let id = RevivalId([0, 1, 2, 3, 4, 5, 0xfe, 0xff]);
        assert_eq!(id.to_string(), "000102030405feff");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "0", "000102030405FEFF", "+00102030405feff", "000102030405feff0"] {
            assert_eq!(text.parse::<RevivalId>(), Err(NoRevivalId), "{text}");
        }
    }

    #[test]
    fn what_died_after_the_beginning_is_not_wanted() {
        let revival = |before: Option<u64>| Revival {
            id: RevivalId([0; 8]),
            filter: DeadFilter {
                topic: "t".parse().unwrap(),
                reason: None,
                after: None,
                before: before.map(Timestamp::from_millis),
            },
            rate: 1,
            started: Timestamp::from_millis(1000),
            ended: None,
            state: RevivalState::Running,
            revived: 0,
        };
        let before = |given| revival(given).wanted().before.map(Timestamp::as_millis);
        assert_eq!(
            (before(None), before(Some(900)), before(Some(5000))),
            (Some(1001), Some(900), Some(1001))
        );
    }
}
