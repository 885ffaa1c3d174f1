//! Draws of tenants from their quotas.

use ringback_core::clock::millis_up;
use ringback_core::contract::{DRAW_SLOT_MS, DRAW_SLOTS, Draw, DrawLimit, Drawn, StoreError};
use ringback_core::job::Tenant;

use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Takes a part of the jobs that a tenant may submit.
    pub async fn draw(&self, tenant: &Tenant, draw: Draw) -> Result<Drawn, StoreError> {
        let Draw { wanted, per_second, room, age } = draw;
        let limits = (wanted, per_second, room, millis_up(age));
        let args = (tenant.as_str(), limits, DRAW_SLOT_MS, DRAW_SLOTS);
        let (granted, is_rate): (u64, bool) = self.ask_installation(&script::DRAW, args).await?;
        Ok(Drawn { granted, limit: if is_rate { DrawLimit::Rate } else { DrawLimit::Jobs } })
    }
}
