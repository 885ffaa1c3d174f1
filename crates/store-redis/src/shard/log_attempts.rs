//! Records attempts in the logs of their jobs.

use ringback_core::store_types::attempt_log::pack;
use ringback_core::store_types::{AttemptLogEntry, LogResult, Proof, Shard, StoreError};

use crate::record::{pack_lease, six};
use crate::redis_store::RedisStore;
use crate::script;

/// How many attempts one call of the script records. With full logs of long answers it takes a few milliseconds.
const AT_ONCE: usize = 64;

impl RedisStore {
    pub async fn log_attempts(
        &self,
        shard: Shard,
        notes: &[AttemptLogEntry],
    ) -> Result<LogResult, StoreError> {
        let keep = self.options.attempt_retention();
        for notes in notes.chunks(AT_ONCE) {
            let packed = |note: &AttemptLogEntry| {
                (note.locator.0.to_vec(), pack_proof(&note.proof), pack(&note.attempt))
            };
            let packed: Vec<_> = notes.iter().map(packed).collect();
            self.call(&script::LOG_ATTEMPTS, shard).arg((keep.time, keep.bytes, packed)).run::<u64>().await?;
        }
        Ok(LogResult::Kept)
    }
}

/// Packs the proof of an attempt as `log_attempts.lua` reads it.
fn pack_proof(proof: &Proof) -> Vec<u8> {
    match proof {
        Proof::Created(at) => six(at.as_millis()).to_vec(),
        Proof::Held(receipt) => pack_lease(*receipt).to_vec(),
        Proof::Expired(receipt) => [&pack_lease(*receipt)[..], &[1]].concat(),
    }
}
