//! Moves of one job by its name: reschedule, run, revive and purge.

use super::arrivals::pack_due;
use crate::job::JobKey;
use crate::store::moves::Move;
use crate::store::redis::redis_store::RedisStore;
use crate::store::redis::{reply, script};
use crate::store::{Moved, Shard, StoreError};

impl RedisStore {
    pub(crate) async fn move_job(&self, shard: Shard, key: &JobKey, what: Move) -> Result<Moved, StoreError> {
        let (script, token, due) = match what {
            Move::Reschedule(due, token) => (&script::RESCHEDULE, Some(token), Some(due)),
            Move::Run(token) => (&script::RUN, Some(token), None),
            Move::Revive(token) => (&script::REVIVE, Some(token), None),
            Move::Purge => (&script::PURGE, None, None),
        };
        let answer = self.run(script, shard, |cmd| {
            cmd.arg(&key.locator().0);
            token.iter().for_each(|token| {
                cmd.arg(&token.0);
            });
            due.iter().for_each(|due| {
                cmd.arg(pack_due(*due));
            });
        });
        reply::moved(answer.await?, key)
    }
}
