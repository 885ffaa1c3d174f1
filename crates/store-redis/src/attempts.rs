//! The log of attempts on Redis: notes as `note.lua` takes them.

use ringback_core::contract::attempt_log::{pack, shown};
use ringback_core::contract::{Attempt, Note, Noted, Proof, Shard, StoreError};
use ringback_core::job::JobKey;

use super::layout::six;
use super::script::{self, reply};
use super::{RedisStore, codec};

/// So many notes share a script: with full logs of long answers it takes a few milliseconds.
const AT_ONCE: usize = 64;

impl RedisStore {
    pub async fn note(&self, shard: Shard, notes: &[Note]) -> Result<Noted, StoreError> {
        let keep = self.options.attempt_retention();
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

    pub async fn attempts(&self, shard: Shard, key: &JobKey) -> Result<Option<Vec<Attempt>>, StoreError> {
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
        Ok(shown(log, created, reply::number(&now)?, self.options.attempt_retention().time))
    }
}

/// Whose attempt it was, as the script takes it.
fn proven(proof: &Proof) -> Vec<u8> {
    match proof {
        Proof::Created(at) => six(at.as_millis()).to_vec(),
        Proof::Held(receipt) => codec::held(*receipt).to_vec(),
        Proof::Expired(receipt) => [&codec::held(*receipt)[..], &[1]].concat(),
    }
}
