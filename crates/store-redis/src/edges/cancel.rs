//! Cancelling a job.

use ringback_core::contract::{Cancelled, Shard, StoreError};
use ringback_core::job::JobKey;
use ringback_core::state::State;

use crate::redis_store::RedisStore;
use crate::{reply, script};

impl RedisStore {
    pub async fn cancel(&self, shard: Shard, key: &JobKey) -> Result<Cancelled, StoreError> {
        let answer = self.run(&script::CANCEL, shard, |cmd| {
            cmd.arg(&key.locator().0);
            self.push_keep(cmd);
        });
        let (code, in_flight_unknown): (i64, bool) = answer.await?;
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
