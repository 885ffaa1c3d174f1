//! Notices that the store has lost accepted jobs: it was emptied, or came back with older data.
//!
//! Two signs show a loss. The row of the installation has an id of the data, made with the row: another id, or none,
//! means that the row is gone. And each shard counts the jobs that it has accepted, a number that never falls. A process
//! remembers the highest count that it was answered (`accepted_counts`) and sends it with each submit. The script adds
//! nothing to a shard that has accepted fewer.
//!
//! If every accepted job was on disk or on a replica before it was answered, a loss is recorded in the row and has to be
//! accepted by hand: until then submits are refused. Otherwise losses are expected: they are logged and counted, and work
//! goes on. So are losses of the last seconds after the promotion of a replica, unless replicas had to confirm each job.

use std::io;
use std::sync::Arc;

use ringback_core::store_types::{AcceptLoss, Loss, Profile, Shard, StoreError};

use crate::accepted_counts::{KnownCount, Row, SeenRow};
use crate::keys::KeySpace;
use crate::lane_ids::LaneKey;
use crate::redis_store::RedisStore;
use crate::script;
use crate::server_checks::Findings;
use crate::server_checks::no_replica;
use crate::topology::Confirmation;

/// Whether losses are recorded in the row and have to be accepted by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Losses {
    HaveToBeAccepted,
    /// A replica was promoted: losses of jobs that were accepted in the last six seconds are expected.
    AreExpectedOfLate,
    AreExpected,
}

impl RedisStore {
    pub fn loss(&self) -> Option<Loss> {
        self.accepted_counts.loss()
    }

    pub async fn accept_loss(&self, run_id: &str) -> Result<AcceptLoss, StoreError> {
        let (is_accepted, run_id, jobs): (bool, String, u64) =
            self.call(&script::ACCEPT_LOSS, KeySpace::Installation).confirmed().arg(run_id).run().await?;
        let loss = (!run_id.is_empty()).then_some(Loss { run_id, jobs });
        match loss {
            Some(loss) if is_accepted => {
                // Submits go on at once here. The other processes notice it when they next read the row, as this one
                // does if it cannot read the row now.
                if let Err(error) = self.look_at_losses().await {
                    tracing::debug!(%error, "the loss is accepted, and the store cannot be looked at");
                }
                Ok(AcceptLoss::Accepted(loss))
            }
            loss => Ok(AcceptLoss::Unknown(loss)),
        }
    }

    async fn look_at_losses(&self) -> Result<(), StoreError> {
        let _alone = self.preparing.lock().await;
        self.look_at_installation().await?;
        self.note_losses(None).await
    }

    /// Fails with `Lost` while a loss has to be accepted.
    pub(crate) fn check_no_loss(&self) -> Result<(), StoreError> {
        self.loss().map_or(Ok(()), |loss| Err(StoreError::Lost(loss)))
    }

    /// Returns how to handle losses that are noticed now, by the durability of the servers and by whether a replica was
    /// promoted. Without findings, losses have to be accepted.
    fn losses(&self, found: Option<&Findings>) -> Losses {
        let Some(found) = found else { return Losses::HaveToBeAccepted };
        let installation = self.accepted_counts.installation();
        let is_known =
            |id: &Option<String>| id.as_ref().is_some_and(|id| installation.replication.contains(id));
        let servers = &found.replication;
        let was_promoted = servers.iter().any(|server| is_known(&server.former) && !is_known(&server.id));
        let is_replicated = self.options.durability == Some(Profile::Replicated);
        match (self.keeps_all(), was_promoted && !is_replicated) {
            (false, _) => Losses::AreExpected,
            (true, true) => Losses::AreExpectedOfLate,
            (true, false) => Losses::HaveToBeAccepted,
        }
    }

    /// Returns how often a loss of jobs was noticed since the start, by this process or another one.
    pub fn losses_noticed(&self) -> u64 {
        self.accepted_counts.installation().losses
    }

    /// Returns the id in the row that was read last, and in the last row without a loss to be accepted; empty before the
    /// first one.
    pub(crate) fn data_ids(&self) -> (String, String) {
        let known = self.accepted_counts.installation();
        (known.data_id.clone(), known.sound_data_id.clone())
    }

    pub(crate) fn take_row(&self, row: Row) -> Result<SeenRow, StoreError> {
        let (_, _, data_id, lost_run_id, jobs, run_id, lane_key, last_loss, ..) = row;
        let lane_key = LaneKey::parse(&lane_key).ok_or(StoreError::Unreadable("the key of lane ids"))?;
        let mut known = self.accepted_counts.installation();
        let loss = (!lost_run_id.is_empty()).then_some(Loss { run_id: lost_run_id, jobs });
        let (is_first, is_another) = (known.data_id.is_empty(), known.data_id != data_id);
        if loss != known.loss {
            match &loss {
                Some(loss) => tracing::error!(
                    run_id = loss.run_id,
                    jobs = loss.jobs,
                    "the store has lost accepted jobs, at least so many; submits are refused until the loss is accepted: `ringback check --accept-loss`"
                ),
                None if is_another => {
                    tracing::warn!(
                        "the store from before the loss is back; submits go on if it has all accepted jobs"
                    );
                }
                None => tracing::warn!("no loss of jobs has to be accepted any more; submits go on"),
            }
        }
        let is_another = is_another && !is_first;
        if is_another && data_id != known.sound_data_id {
            tracing::error!(
                "the store is not the one that it was: its installation is gone, and a new one in its place"
            );
        }
        if !is_first && (is_another || last_loss != known.last_loss) {
            known.losses += 1;
        }
        if loss.is_none() {
            known.sound_data_id.clone_from(&data_id);
        }
        (known.loss, known.data_id, known.last_loss) = (loss, data_id, last_loss);
        known.lane_key = Some(lane_key);
        Ok(SeenRow { is_another, run_id })
    }

    /// Reads the count of the next shard, all in turn, and returns whether it has lost jobs. Makes no call and returns
    /// false if no jobs of it are known, and also returns false while its slot moves. Counts that replicas do not have
    /// are not remembered: these jobs may be gone when a replica takes over.
    pub(crate) async fn has_next_shard_lost(&self) -> Result<bool, StoreError> {
        let Some(shard) = self.accepted_counts.next() else { return Ok(false) };
        let known = self.accepted_counts.known(shard);
        let asked = self.read_fields(shard, Confirmation::ByReplicas).await;
        let accepted = match no_replica(asked) {
            Err(StoreError::Moving(_)) => return Ok(false),
            answer => answer?.accepted(),
        };
        self.accepted_counts.saw(shard, known, accepted);
        Ok(accepted < known.accepted)
    }

    /// Reads the counts of all shards with known jobs, and handles losses: records them in the row, or acknowledges them.
    /// Takes a loss back if its jobs are there again. Fails if a shard has lost jobs and its server is not among
    /// `found`: another server has taken over since.
    pub(crate) async fn note_losses(&self, found: Option<&Findings>) -> Result<(), StoreError> {
        let losses = self.losses(found);
        for shard in self.options.all_shards() {
            let known = self.accepted_counts.known(shard);
            if known.accepted == 0 {
                continue;
            }
            let (accepted, run_id): (u64, String) =
                match self.call(&script::ACCEPTED, shard).early().run().await {
                    // The shard is checked when its turn comes.
                    Err(StoreError::Moving(_)) => continue,
                    answer => answer?,
                };
            if accepted < known.accepted {
                if found.is_some_and(|found| !found.run_ids.contains(&run_id)) {
                    return Err(another_server());
                }
                self.note_loss(shard, known, (accepted, run_id), losses).await?;
            } else if known.missing > 0 && self.accepted_counts.find(shard) {
                self.take_back().await?;
            }
        }
        Ok(())
    }

    /// Removes the loss from the row, after all missing jobs have come back, unless the row was replaced meanwhile.
    async fn take_back(&self) -> Result<(), StoreError> {
        let is_same = self.data_ids().0 == self.data_ids().1;
        if let Some(loss) = self.loss().filter(|_| is_same) {
            let row = self.call(&script::TAKE_BACK, KeySpace::Installation).early().arg(&loss.run_id).run();
            self.take_row(row.await?)?;
        }
        Ok(())
    }

    async fn note_loss(
        &self,
        shard: Shard,
        known: KnownCount,
        (accepted, run_id): (u64, String),
        losses: Losses,
    ) -> Result<(), StoreError> {
        let has_to_be_accepted = match losses {
            Losses::HaveToBeAccepted => true,
            Losses::AreExpectedOfLate => accepted < self.accepted_counts.accepted_before(shard),
            Losses::AreExpected => false,
        };
        if has_to_be_accepted {
            let jobs = self.accepted_counts.miss(shard, accepted);
            let data_id = self.accepted_counts.installation().data_id.clone();
            let row =
                self.call(&script::LOSE, KeySpace::Installation).early().arg((&run_id, jobs, &data_id)).run();
            if self.take_row(row.await?)?.is_another {
                return Err(another_server());
            }
            if self.loss().is_some() {
                return Ok(());
            }
        }
        if self.accepted_counts.is_outdated(shard, known) {
            return Ok(());
        }
        // The row comes first, so that all is done again if this fails.
        let row = self.call(&script::NOTE_FORGOTTEN, KeySpace::Installation).early().run();
        self.take_row(row.await?)?;
        if self.accepted_counts.forget(shard, known, accepted) {
            let jobs = known.accepted - accepted;
            tracing::error!(
                shard = shard.0,
                jobs,
                "the store has lost accepted jobs of a shard, at least so many"
            );
        }
        Ok(())
    }
}

/// Returns the error for servers that others have replaced during a check.
fn another_server() -> StoreError {
    StoreError::Away(Arc::new(io::Error::other("another server has taken over")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringback_core::store_types::{Options, StoreTls};
    use ringback_core::topic_policy::Logging;

    use super::*;

    fn store() -> RedisStore {
        let options = Options {
            url: "redis://127.0.0.1:1".to_owned(),
            tls: StoreTls::default(),
            prefix: "ringback".to_owned(),
            shards: 1,
            keep_done: Duration::from_secs(3600),
            keep_done_mib: 256,
            keep_dead: Duration::from_secs(3600),
            attempts: Logging::Failed,
            keep_attempts: Duration::from_secs(3600),
            keep_attempts_mib: 64,
            keep_free_mib: 0,
            durability: None,
            call_timeout: Duration::from_secs(1),
        };
        RedisStore::open(options).expect("the options are right")
    }

    /// Takes rows with an id of the data, with a loss that has to be accepted or not, and its text of the last loss.
    /// Returns the ids of the data that are sent with the next look, and how many losses were noticed.
    fn taken(rows: &[(&str, bool, &str)]) -> (String, String, u64) {
        let store = store();
        for (data_id, is_lost, last_loss) in rows {
            let lost = if *is_lost { "run".to_owned() } else { String::new() };
            let text = str::to_owned;
            let (layout, shards, lane_key) = (text("1"), text("1"), "07".repeat(32));
            let (data_id, last_loss) = (text(data_id), text(last_loss));
            let row = (layout, shards, data_id, lost, 0, text("run"), lane_key, last_loss, 0, 0, Vec::new());
            store.take_row(row).unwrap();
        }
        let (data_id, sound) = store.data_ids();
        (data_id, sound, store.losses_noticed())
    }

    #[tokio::test]
    async fn the_life_from_before_a_loss_is_known_until_the_loss_is_accepted() {
        for (rows, data_id, sound, losses) in [
            (&[("a", false, "")][..], "a", "a", 0),
            (&[("a", false, "x"), ("a", false, "x")], "a", "a", 0),
            (&[("a", false, ""), ("b", true, "")], "b", "a", 1),
            // Put back; accepted.
            (&[("a", false, ""), ("b", true, ""), ("a", false, "")], "a", "a", 2),
            (&[("a", false, ""), ("b", true, ""), ("b", false, "x")], "b", "b", 2),
            // Noticed by another process, and not one that has to be accepted.
            (&[("a", false, ""), ("a", false, "x"), ("a", false, "y")], "a", "a", 2),
            // Started meanwhile.
            (&[("b", true, "")], "b", "", 0),
            (&[("b", true, ""), ("a", false, "")], "a", "a", 1),
        ] {
            assert_eq!(taken(rows), (data_id.to_owned(), sound.to_owned(), losses), "{rows:?}");
        }
    }
}
