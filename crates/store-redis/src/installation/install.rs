//! Makes the installation's row at the first start, then reads and checks it: layout and number of shards are fixed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ringback_core::clock::millis_up;
use ringback_core::store_types::StoreError;
use tokio::time::Instant;

use crate::accepted_counts::{Row, SeenRow};
use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;

/// How often a process records for how long it keeps tombstones.
const NOTE_EVERY: Duration = Duration::from_secs(10);

impl RedisStore {
    /// Makes or reads the row of the installation, and remembers its clock, retention, id and loss. Fails if it has
    /// another layout or another number of shards.
    pub(crate) async fn look_at_installation(&self) -> Result<SeenRow, StoreError> {
        let connection = self.topology.connection_number();
        let row = match self.look_at_known_row(connection).await? {
            Some(row) => row,
            None => self.install().await?,
        };
        {
            let mut installation = self.accepted_counts.installation();
            (installation.row, installation.connection) = (Some(row.clone()), connection);
        }
        self.shortest_keep_done.store(row.9, Ordering::Relaxed);
        let (layout, stored_shards) = (&row.0, &row.1);
        if *layout != Self::LAYOUT.to_string() {
            return Err(StoreError::other_layout(layout, Self::LAYOUT));
        }
        if *stored_shards != self.options.shards.to_string() {
            return Err(self.options.shard_mismatch(stored_shards));
        }
        self.take_row(row)
    }

    /// Returns the row that was read last, if it is still the same, and was read by this connection: the next one may lead
    /// to another run of the server, which `install` finds out. Plain commands, because a script costs three times as
    /// much. One of them writes, though it changes nothing: it fails where no write would succeed.
    async fn look_at_known_row(&self, connection: Option<u64>) -> Result<Option<Row>, StoreError> {
        let (mut known, is_due) = {
            let mut installation = self.accepted_counts.installation();
            let is_same = connection.is_some() && installation.connection == connection;
            let Some(known) = installation.row.clone().filter(|_| is_same) else { return Ok(None) };
            let is_due = installation.keep_done_noted.is_none_or(|noted| noted.elapsed() >= NOTE_EVERY);
            if is_due {
                installation.keep_done_noted = Some(Instant::now());
            }
            (known, is_due)
        };
        let (space, row) = (KeySpace::Installation, self.keys.install());
        let asked = Instant::now();
        let time = self.server_time(space);
        let write =
            self.command("HDEL", space, "a field of the installation's row").early().arg((&row, "")).run();
        let read = self.command("HGETALL", space, "the installation's row").early().arg(&row).run();
        let (now, _, row): (u64, u64, Vec<Vec<u8>>) = tokio::try_join!(time, write, read)?;
        if row != known.10 || self.topology.connection_number() != connection {
            return Ok(None);
        }
        self.clock.saw(now, asked.elapsed());
        if is_due {
            let note = self.call(&script::NOTE_KEEP_DONE, space).early().arg(self.keep_done_millis());
            known.9 = note.run().await?;
        }
        Ok(Some(known))
    }

    /// Makes the row if there is none, and returns it.
    async fn install(&self) -> Result<Row, StoreError> {
        let has_to_be_accepted = u8::from(self.keeps_all());
        let key = self.new_lane_key.to_hex();
        let (data_id, sound_data_id) = self.data_ids();
        let (shards, keep_done) = (self.options.shards, self.keep_done_millis());
        let args = (Self::LAYOUT, shards, data_id, has_to_be_accepted, key, sound_data_id, keep_done);
        let asked = Instant::now();
        let row: Row = self.call(&script::INSTALL, KeySpace::Installation).early().arg(args).run().await?;
        self.clock.saw(row.8, asked.elapsed());
        Ok(row)
    }

    fn keep_done_millis(&self) -> String {
        millis_up(self.options.keep_done).to_string()
    }
}
