//! Recording attempts in the logs of their jobs, while memory is not short.

use crate::store::attempts::{Proof, pack};
use crate::store::redis::record::{pack_receipt, six};
use crate::store::redis::redis_store::RedisStore;
use crate::store::redis::script;
use crate::store::{Note, Noted, Shard, StoreError};

/// How many attempts one script records. With full logs of long answers it takes a few milliseconds.
const AT_ONCE: usize = 64;

impl RedisStore {
    pub(crate) async fn note(&self, shard: Shard, notes: &[Note]) -> Result<Noted, StoreError> {
        if self.memory.is_high(&self.topology).await {
            return Ok(Noted::Full);
        }
        let keep = self.options.logs();
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
        Proof::Held(receipt) => pack_receipt(*receipt).to_vec(),
        Proof::Lapsed(receipt) => [&pack_receipt(*receipt)[..], &[1]].concat(),
    }
}
