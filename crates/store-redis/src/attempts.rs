//! The log of attempts on Redis: notes as `note.lua` takes them, and whether there is room for
//! them. They are left out before the store is full, so that they never take a job's place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::layout::six;
use super::script::{self, reply};
use super::{RedisStore, codec};
use crate::job::JobKey;
use crate::store::attempts::{Proof, pack, shown};
use crate::store::{Attempt, Note, Noted, Shard, StoreError};

/// From this share of the memory limit on, nothing is noted.
const HIGH: f64 = 0.8;
/// How long a look at the store counts. It is looked at only while there are notes.
const EVERY: Duration = Duration::from_secs(1);

/// So many notes share a script: with full logs of long answers it takes a few milliseconds.
const AT_ONCE: usize = 64;

/// Whether there was room for notes when it was looked at last.
#[derive(Default)]
pub(crate) struct Room {
    is_full: AtomicBool,
    looked: Mutex<Option<Instant>>,
}

impl RedisStore {
    pub(crate) async fn note(&self, shard: Shard, notes: &[Note]) -> Result<Noted, StoreError> {
        if self.is_full().await {
            return Ok(Noted::Full);
        }
        let keep = self.options.logs();
        for notes in notes.chunks(AT_ONCE) {
            let answer = self.run(&script::NOTE, shard, |cmd| {
                cmd.arg(keep.time).arg(keep.bytes);
                for Note { locator, proof, attempt } in notes {
                    cmd.arg(&locator.0).arg(proven(proof)).arg(pack(attempt));
                }
            });
            answer.await?;
        }
        Ok(Noted::Kept)
    }

    pub(crate) async fn attempts(
        &self,
        shard: Shard,
        key: &JobKey,
    ) -> Result<Option<Vec<Attempt>>, StoreError> {
        let answer = self.run(&script::ATTEMPTS, shard, |cmd| {
            cmd.arg(&key.locator().0);
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        let (Some(now), Some(created), Some(log)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(StoreError::Unreadable("a job's attempts"));
        };
        let created = reply::bytes(created)?;
        let created = (!created.is_empty()).then(|| created.iter().fold(0, |n, b| n << 8 | u64::from(*b)));
        let log = Some(reply::bytes(log)?).filter(|log| !log.is_empty());
        Ok(shown(log, created, reply::number(&now)?, self.options.logs().time))
    }

    /// One caller looks, the others take what was seen last; a store that does not answer
    /// leaves it as it was.
    async fn is_full(&self) -> bool {
        let Room { is_full, looked } = &self.room;
        if let Ok(mut looked) = looked.try_lock()
            && looked.is_none_or(|at| at.elapsed() >= EVERY)
        {
            if let Ok(share) = self.memory_share().await {
                is_full.store(share >= HIGH, Ordering::Relaxed);
            }
            *looked = Some(Instant::now());
        }
        is_full.load(Ordering::Relaxed)
    }
}

/// Whose attempt it was, as the script takes it.
fn proven(proof: &Proof) -> Vec<u8> {
    match proof {
        Proof::Created(at) => six(at.as_millis()).to_vec(),
        Proof::Held(receipt) => codec::held(*receipt).to_vec(),
        Proof::Lapsed(receipt) => [&codec::held(*receipt)[..], &[1]].concat(),
    }
}
