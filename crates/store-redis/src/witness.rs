//! What a process knows of the data in the store: how many jobs each shard has accepted, the life of the installation,
//! and a loss that has to be accepted. Plain values; `losses` decides what they mean.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ringback_core::contract::{Loss, Shard};

/// The row of the installation: layout, shards, life, `run_id` of a loss or nothing, and its jobs. Then
/// the `run_id` of its server.
pub(crate) type Row = (String, String, String, String, u64, String);

/// What a look at the row shows.
pub(crate) struct SeenRow {
    /// The row that was known is gone.
    pub(crate) is_another: bool,
    /// The `run_id` of its server.
    pub(crate) run_id: String,
}

/// How many accepted jobs of a shard a process knows of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub(crate) accepted: u64,
    /// How many of them are missing, while that has to be accepted.
    missing: u64,
    /// Grows when a loss was taken note of. Answers from before it say nothing of the shard as it is now.
    generation: u32,
}

/// What a process knows of the data.
#[derive(Debug)]
pub(crate) struct Witness {
    shards: Vec<Mutex<Known>>,
    installation: Mutex<Installation>,
}

/// What is known of all shards together.
#[derive(Debug, Default)]
pub(crate) struct Installation {
    /// Empty before the first look.
    pub(crate) life: String,
    /// The loss that has to be accepted.
    pub(crate) loss: Option<Loss>,
    /// The replication ids of the servers.
    pub(crate) replication: Vec<String>,
    /// The shard that is looked at next.
    turn: u16,
}

impl Witness {
    pub(crate) fn new(shards: u16) -> Self {
        Self { shards: (0..shards).map(|_| Mutex::default()).collect(), installation: Mutex::default() }
    }

    fn of(&self, shard: Shard) -> MutexGuard<'_, Known> {
        self.shards[usize::from(shard.0)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn installation(&self) -> MutexGuard<'_, Installation> {
        self.installation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn known(&self, shard: Shard) -> Known {
        *self.of(shard)
    }

    /// Takes the answer to a call that was sent with `known`.
    pub(crate) fn saw(&self, shard: Shard, known: Known, accepted: u64) {
        let mut now = self.of(shard);
        if now.generation == known.generation {
            now.accepted = now.accepted.max(accepted);
        }
    }

    /// Knows of no more jobs than there are.
    pub(crate) fn forget(&self, shard: Shard, accepted: u64) {
        let mut now = self.of(shard);
        *now = Known { accepted, missing: 0, generation: now.generation.wrapping_add(1) };
    }

    /// Notes that jobs of a shard are missing. Returns how many are in all shards.
    pub(crate) fn miss(&self, shard: Shard, accepted: u64) -> u64 {
        {
            let mut now = self.of(shard);
            now.missing = now.accepted.saturating_sub(accepted);
        }
        (0..).map(Shard).zip(&self.shards).map(|(shard, _)| self.known(shard).missing).sum()
    }

    pub(crate) fn loss(&self) -> Option<Loss> {
        self.installation().loss.clone()
    }

    /// The next shard of which something is known, all in turn.
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
