//! Makes the installation's row at the first start, then reads and checks it: layout and number of shards are fixed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::Value;
use ringback_core::clock::millis_up;
use ringback_core::store_types::StoreError;
use tokio::time::Instant;

use crate::accepted_counts::{Row, SeenRow};
use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::{reply, script};

/// How often a process says for how long it keeps tombstones.
const NOTE_EVERY: Duration = Duration::from_secs(5);

impl RedisStore {
    /// Makes or reads the row of the installation, and remembers its clock, retention, id and loss. Fails if it has
    /// another layout or another number of shards.
    pub(crate) async fn look_at_installation(&self) -> Result<SeenRow, StoreError> {
        let has_to_be_accepted = u8::from(self.keeps_all());
        let key = self.new_lane_key.to_hex();
        let (data_id, sound_data_id) = self.data_ids();
        let (asked, shards) = (Instant::now(), self.options.shards);
        let (known, keep_done) = {
            let mut installation = self.accepted_counts.installation();
            let is_noted = installation.keep_done_noted.is_some_and(|noted| noted.elapsed() < NOTE_EVERY);
            let keep_done = (!is_noted).then(|| millis_up(self.options.keep_done).to_string());
            installation.keep_done_noted = installation.keep_done_noted.filter(|_| is_noted).or(Some(asked));
            (installation.row.clone(), keep_done.unwrap_or_default())
        };
        let text = known.as_ref().map_or("", |row| &row.10);
        let args = (Self::LAYOUT, shards, data_id, has_to_be_accepted, key, sound_data_id, keep_done, text);
        let answer: Value =
            self.call(&script::INSTALL, KeySpace::Installation).early().arg(args).run().await?;
        let row: Row = match (known, answer) {
            // The row is the known one.
            (Some(mut known), Value::Array(values)) if values.len() == 2 => {
                let (now, shortest): (u64, i64) = reply::read(Value::Array(values), script::INSTALL.name())?;
                known.8 = now;
                known.9 = u64::try_from(shortest).unwrap_or(known.9);
                known
            }
            (_, answer) => reply::read(answer, script::INSTALL.name())?,
        };
        self.accepted_counts.installation().row = Some(row.clone());
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
