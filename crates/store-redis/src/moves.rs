//! The edges that move one job by its name: reschedule, run, revive and purge.

use ringback_core::contract::{Move, MoveResult, Shard, StoreError};
use ringback_core::job::JobKey;

use super::script::{self, reply};
use super::{RedisStore, arrive, codec};

impl RedisStore {
    pub async fn move_job(&self, shard: Shard, key: &JobKey, what: Move) -> Result<MoveResult, StoreError> {
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
                cmd.arg(arrive::due(*due));
            });
        });
        codec::moved(reply::list(answer.await?)?, key)
    }
}
