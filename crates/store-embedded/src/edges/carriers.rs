//! The live carriers, and which of them holds a shard.

use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::contract::{Epoch, LiveCarriers, Shard, StoreError, Wake};

use crate::location::lock;
use crate::{EDGE_BYTES, EmbeddedStore};

impl EmbeddedStore {
    /// Carriers are in this process, so they are kept in memory only.
    pub fn heartbeat(&self, carrier: &str, ttl: Duration) -> Result<LiveCarriers, StoreError> {
        self.writer()?;
        let location = &self.shared.location;
        let now = location.clock.micros();
        let mut live = lock(&location.carriers);
        live.retain(|_, until| *until > now);
        let changed = if ttl.is_zero() {
            live.remove(carrier).is_some()
        } else {
            live.insert(carrier.to_owned(), now + millis_up(ttl).saturating_mul(1000)).is_none()
        };
        let others = live.iter().filter(|(name, _)| *name != carrier);
        let next_change = others.map(|(_, until)| Duration::from_micros(until - now)).min();
        let carriers = live.keys().cloned().collect();
        drop(live);
        if changed {
            // An error means that nobody listens.
            let _ = location.wakes.send(Wake::Carriers);
        }
        // A carrier that waits for a redrive is woken, or knows when one is free.
        Ok(LiveCarriers { carriers, next_change, next_redrive: None })
    }

    /// Whoever held the shard before is fenced.
    pub async fn claim(&self, shard: Shard) -> Result<Epoch, StoreError> {
        self.call(shard, EDGE_BYTES, |txn| {
            txn.row.epoch = txn.now_us().max(txn.row.epoch + 1);
            Ok(Epoch(txn.row.epoch.to_string()))
        })
        .await
    }

    /// Does nothing: the epoch stays, so that the next claim gets a later one.
    pub fn release_shard(&self) -> Result<(), StoreError> {
        self.writer().map(drop)
    }
}
