//! Records attempts in the logs of their jobs.

use ringback_core::contract::attempt_log::pack;
use ringback_core::contract::{Note, Noted, Proof, Shard, StoreError};

use crate::record::{pack_lease, six};
use crate::redis_store::RedisStore;
use crate::script;

/// How many attempts one script records. With full logs of long answers it takes a few milliseconds.
const AT_ONCE: usize = 64;

impl RedisStore {
    pub async fn note(&self, shard: Shard, notes: &[Note]) -> Result<Noted, StoreError> {
        let keep = self.options.attempt_retention();
        for notes in notes.chunks(AT_ONCE) {
            let changed = self.run::<u64>(&script::NOTE, shard, |cmd| {
                cmd.arg(keep.time).arg(keep.bytes);
                for Note { locator, proof, attempt } in notes {
                    cmd.arg(&locator.0).arg(pack_proof(proof)).arg(pack(attempt));
                }
            });
            changed.await?;
        }
        Ok(Noted::Kept)
    }
}

/// Packs the proof of an attempt as note.lua reads it.
fn pack_proof(proof: &Proof) -> Vec<u8> {
    match proof {
        Proof::Created(at) => six(at.as_millis()).to_vec(),
        Proof::Held(receipt) => pack_lease(*receipt).to_vec(),
        Proof::Expired(receipt) => [&pack_lease(*receipt)[..], &[1]].concat(),
    }
}
