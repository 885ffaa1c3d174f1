//! The data of a process about the store's data: how many jobs each shard has accepted, the id of the installation, and
//! a loss that has to be accepted. Only stores values; `losses` decides what they mean.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringback_core::store_types::{Loss, Shard};
use tokio::time::Instant;

use crate::lane_ids::LaneKey;

/// The row of the installation: layout, shards, id of the data, `run_id` of a loss or nothing, and its jobs. Then
/// the `run_id` of its server, the key of lane ids, a text that changes with each acknowledged loss, the server's time
/// in µs, the shortest time for which a process keeps tombstones, in ms, and the row as it is stored.
pub(crate) type Row = (String, String, String, String, u64, String, String, String, u64, u64, Vec<Vec<u8>>);

/// The result of reading the row.
pub(crate) struct SeenRow {
    /// Whether another row has taken the place of the known one.
    pub(crate) is_another: bool,
    pub(crate) run_id: String,
}

/// The shortest time between two remembered counts of accepted jobs.
const STEP: Duration = Duration::from_secs(2);

/// The accepted jobs of a shard that a process knows of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownCount {
    pub(crate) accepted: u64,
    /// How many of them are missing, while the loss has to be accepted.
    pub(crate) missing: u64,
    /// How many jobs were accepted when the present and the former step of [`STEP`] began.
    steps: [u64; 2],
    step_began: Option<Instant>,
    /// Grows when a loss is acknowledged. Answers to calls from before that are outdated.
    version: u32,
}

#[derive(Debug)]
pub(crate) struct AcceptedCounts {
    shards: Vec<Mutex<KnownCount>>,
    installation: Mutex<Installation>,
}

/// The data about all shards together.
#[derive(Debug, Default)]
pub(crate) struct Installation {
    /// The id in the row that was read last. Empty before the first one.
    pub(crate) data_id: String,
    /// The id in the last row that showed no loss to be accepted. If this id comes back, the loss may be over.
    pub(crate) sound_data_id: String,
    /// The text that changes with each acknowledged loss.
    pub(crate) last_loss: String,
    /// How often a loss was noticed, by this process or another one.
    pub(crate) losses: u64,
    pub(crate) loss: Option<Loss>,
    /// The key of the ids of lanes. `None` before the row was read.
    pub(crate) lane_key: Option<LaneKey>,
    /// The row that was read last.
    pub(crate) row: Option<Row>,
    /// The number of the connection by which it was read: another one may lead to another run of the server.
    pub(crate) connection: Option<u64>,
    /// When this process last recorded for how long it keeps tombstones.
    pub(crate) keep_done_noted: Option<Instant>,
    /// The replication ids of the servers.
    pub(crate) replication: Vec<String>,
    /// The shard that is checked for losses next.
    turn: u16,
}

impl KnownCount {
    /// Begins a step if the present one is over, and remembers the count of accepted jobs.
    fn step(&mut self) {
        let lasts = self.step_began.map_or(Duration::ZERO, |began| began.elapsed());
        if self.step_began.is_none() {
            self.step_began = Some(Instant::now());
        } else if lasts >= 2 * STEP {
            (self.steps, self.step_began) = ([self.accepted; 2], Some(Instant::now()));
        } else if lasts >= STEP {
            (self.steps, self.step_began) = ([self.accepted, self.steps[0]], Some(Instant::now()));
        }
    }
}

impl AcceptedCounts {
    pub(crate) fn new(shards: u16) -> Self {
        Self { shards: (0..shards).map(|_| Mutex::default()).collect(), installation: Mutex::default() }
    }

    fn of(&self, shard: Shard) -> MutexGuard<'_, KnownCount> {
        self.shards[usize::from(shard.0)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn installation(&self) -> MutexGuard<'_, Installation> {
        self.installation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn known(&self, shard: Shard) -> KnownCount {
        *self.of(shard)
    }

    /// Raises a shard's known count to `accepted`, the answer to a call with `known`, unless a loss was acknowledged.
    pub(crate) fn saw(&self, shard: Shard, known: KnownCount, accepted: u64) {
        let mut now = self.of(shard);
        if now.version == known.version {
            // A store that has lost jobs begins no step.
            if accepted >= now.accepted {
                now.step();
            }
            now.accepted = now.accepted.max(accepted);
        }
    }

    /// Whether a loss was acknowledged since `known` was read.
    pub(crate) fn is_outdated(&self, shard: Shard, known: KnownCount) -> bool {
        self.of(shard).version != known.version
    }

    /// Returns how many jobs of a shard were accepted two to six seconds before the last answer that showed no loss.
    pub(crate) fn accepted_before(&self, shard: Shard) -> u64 {
        self.of(shard).steps[1]
    }

    /// Acknowledges a loss: lowers the known count of a shard to `accepted`. Returns false, and changes nothing, if
    /// another task has acknowledged it since `known` was read.
    pub(crate) fn forget(&self, shard: Shard, known: KnownCount, accepted: u64) -> bool {
        let mut now = self.of(shard);
        if now.version != known.version {
            return false;
        }
        let version = now.version.wrapping_add(1);
        *now = KnownCount { accepted, version, ..KnownCount::default() };
        true
    }

    /// Records that a shard, which has accepted only `accepted`, lost jobs. Returns how many are missing in all shards.
    pub(crate) fn miss(&self, shard: Shard, accepted: u64) -> u64 {
        {
            let mut now = self.of(shard);
            now.missing = now.accepted.saturating_sub(accepted);
        }
        (0..).map(Shard).zip(&self.shards).map(|(shard, _)| self.known(shard).missing).sum()
    }

    /// Records that no job of a shard is missing any more. Returns whether none is missing in any shard.
    pub(crate) fn find(&self, shard: Shard) -> bool {
        self.of(shard).missing = 0;
        (0..).map(Shard).zip(&self.shards).all(|(shard, _)| self.known(shard).missing == 0)
    }

    pub(crate) fn loss(&self) -> Option<Loss> {
        self.installation().loss.clone()
    }

    /// Returns the next shard, all in turn; `None` if the process knows of no accepted jobs of it.
    pub(crate) fn next(&self) -> Option<Shard> {
        let turn = {
            let mut installation = self.installation();
            let turn = installation.turn;
            installation.turn = (turn + 1) % u16::try_from(self.shards.len()).unwrap_or(u16::MAX);
            Shard(turn)
        };
        (self.known(turn).accepted > 0).then_some(turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_that_two_tasks_notice_is_noted_once() {
        let (accepted_counts, shard) = (AcceptedCounts::new(1), Shard(0));
        accepted_counts.saw(shard, accepted_counts.known(shard), 3);
        let known = accepted_counts.known(shard);
        assert!(accepted_counts.forget(shard, known, 1));
        assert!(!accepted_counts.forget(shard, known, 1));
        assert!(accepted_counts.forget(shard, accepted_counts.known(shard), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_accepted_more_than_six_seconds_ago_is_never_taken_for_late() {
        let (accepted_counts, shard) = (AcceptedCounts::new(1), Shard(0));
        for (pause, rounds) in [(100, 300), (1900, 20), (3900, 20), (9000, 3)] {
            let mut accepted = Vec::new();
            for _ in 0..rounds {
                let known = accepted_counts.known(shard);
                accepted_counts.saw(shard, known, known.accepted + 1);
                accepted.push((Instant::now(), known.accepted + 1));
                tokio::time::advance(Duration::from_millis(pause)).await;
                accepted_counts.saw(shard, known, known.accepted + 1);
                let before = accepted_counts.accepted_before(shard);
                for (at, count) in &accepted {
                    let (age, is_before) = (at.elapsed(), *count <= before);
                    assert!(is_before || age <= 3 * STEP, "{age:?}");
                    assert!(!is_before || age >= STEP, "{age:?}");
                }
            }
        }
    }
}
