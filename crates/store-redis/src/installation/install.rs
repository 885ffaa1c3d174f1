//! Makes the installation's row at the first start, then reads and checks it: layout and number of shards are fixed.

use std::sync::atomic::Ordering;

use ringback_core::clock::millis_up;
use ringback_core::store_types::StoreError;
use tokio::time::Instant;

use crate::accepted_counts::{Row, SeenRow};
use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

impl RedisStore {
    /// Makes or reads the row of the installation, and remembers its clock, retention, id and loss. Fails if it has
    /// another layout or another number of shards.
    pub(crate) async fn look_at_installation(&self) -> Result<SeenRow, StoreError> {
        let has_to_be_accepted = u8::from(self.keeps_all());
        let key = self.new_lane_key.to_hex();
        let (data_id, sound_data_id) = self.data_ids();
        let keep_done = millis_up(self.options.keep_done);
        let shards = self.options.shards;
        let args = (Self::LAYOUT, shards, data_id, has_to_be_accepted, key, sound_data_id, keep_done);
        let asked = Instant::now();
        let row: Row = self.call(&script::INSTALL, KeySpace::Installation).early().arg(args).run().await?;
        self.clock.saw(row.8, asked.elapsed());
        self.shortest_keep_done.store(row.9, Ordering::Relaxed);
        let (layout, stored_shards) = (&row.0, &row.1);
        if *layout != Self::LAYOUT.to_string() {
            return Err(StoreError::other_layout(layout, Self::LAYOUT));
        }
        if *stored_shards != shards.to_string() {
            return Err(self.options.shard_mismatch(stored_shards));
        }
        self.take_row(row)
    }
}
