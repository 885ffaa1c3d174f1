//! Changes of one job by its key: reschedule, run, revive, purge and cancel. Replicas confirm each.

use ringback_core::job::JobKey;
use ringback_core::state::State;
use ringback_core::store_types::{Cancelled, Move, MoveResult, Shard, StoreError};

use super::submit::pack_due;
use crate::redis_store::RedisStore;
use crate::{reply, script};

impl RedisStore {
    pub async fn move_job(&self, shard: Shard, key: &JobKey, what: Move) -> Result<MoveResult, StoreError> {
        let (script, token, due) = match what {
            Move::Reschedule(due, token) => (&script::RESCHEDULE, Some(token), Some(due)),
            Move::Run(token) => (&script::RUN, Some(token), None),
            Move::Revive(token) => (&script::REVIVE, Some(token), None),
            Move::Purge => (&script::PURGE, None, None),
        };
        let args = (&key.locator().0, token.as_ref().map(|token| &token.0), due.map(pack_due));
        reply::moved(self.call(script, shard).confirmed().arg(args).run().await?, key)
    }

    pub async fn cancel(&self, shard: Shard, key: &JobKey) -> Result<Cancelled, StoreError> {
        let args = (&key.locator().0, self.keep());
        let (code, in_flight_unknown): (i64, bool) =
            self.call(&script::CANCEL, shard).confirmed().arg(args).run().await?;
        if code == 0 {
            return Ok(Cancelled::Unknown);
        }
        match reply::state(code)? {
            State::Cancelled => Ok(Cancelled::Cancelled { in_flight_unknown }),
            State::Reserved => Ok(Cancelled::Requested { in_flight_unknown }),
            State::Done => Ok(Cancelled::TooLate),
            State::Delayed | State::Ready | State::Dead => {
                Err(StoreError::Unreadable("the answer of a cancel"))
            }
        }
    }
}
