//! Notices that the store has lost accepted jobs: it was emptied, or came back with older data.
//!
//! Two things are known of the data. The row of the installation has a life, a text that is made with it: another one,
//! or none, means that the row is gone. And each shard counts the jobs that it has accepted, which never falls. A
//! process remembers the highest count that it was answered ([`Witness`]), sends it with each submit, and the script
//! adds nothing to a shard that has accepted fewer.
//!
//! Where each accepted job was on disk before it was answered, a loss is noted in the row and has to be accepted by
//! hand: until then submits are refused. Elsewhere, and after the promotion of a replica that lags, losses are expected:
//! they are logged and counted, and work goes on.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ringback_core::contract::{AcceptLoss, Loss, Profile, Shard, StoreError};

use crate::check;
use crate::redis_store::RedisStore;
use crate::script;

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
struct Installation {
    /// Empty before the first look.
    life: String,
    /// The loss that has to be accepted.
    loss: Option<Loss>,
    /// The replication ids of the servers.
    replication: Vec<String>,
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

    fn installation(&self) -> MutexGuard<'_, Installation> {
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
    fn forget(&self, shard: Shard, accepted: u64) {
        let mut now = self.of(shard);
        *now = Known { accepted, missing: 0, generation: now.generation.wrapping_add(1) };
    }

    /// Notes that jobs of a shard are missing. Returns how many are in all shards.
    fn miss(&self, shard: Shard, accepted: u64) -> u64 {
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
    fn next(&self) -> Option<Shard> {
        let turn = {
            let mut installation = self.installation();
            let turn = installation.turn;
            installation.turn = (turn + 1) % u16::try_from(self.shards.len()).unwrap_or(u16::MAX);
            Shard(turn)
        };
        (self.known(turn).accepted > 0).then_some(turn)
    }
}

/// Whether losses are noted in the row and have to be accepted by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Losses {
    HaveToBeAccepted,
    AreExpected,
}

/// The row of the installation: layout, shards, life, and run_id and jobs of a loss.
pub(crate) type Row = (String, String, String, String, u64);

impl RedisStore {
    pub fn loss(&self) -> Option<Loss> {
        self.witness.loss()
    }

    /// Accepts a loss.
    pub async fn accept_loss(&self, run_id: &str) -> Result<AcceptLoss, StoreError> {
        let (is_accepted, run_id, jobs): (bool, String, u64) =
            self.ask_installation(&script::ACCEPT_LOSS, run_id).await?;
        let loss = (!run_id.is_empty()).then_some(Loss { run_id, jobs });
        match loss {
            Some(loss) if is_accepted => {
                // Submits go on at once; the other processes notice it at their next look.
                self.prepare().await?;
                Ok(AcceptLoss::Accepted(loss))
            }
            loss => Ok(AcceptLoss::Unknown(loss)),
        }
    }

    /// Fails while a loss has to be accepted.
    pub(crate) fn check_no_loss(&self) -> Result<(), StoreError> {
        self.loss().map_or(Ok(()), |loss| Err(StoreError::Lost(loss)))
    }

    /// How to take losses that are noticed now. Reads which servers they are.
    pub(crate) async fn losses(&self) -> Result<Losses, StoreError> {
        let servers = check::replication(&self.topology).await?;
        let mut installation = self.witness.installation();
        let is_known =
            |id: &Option<String>| id.as_ref().is_some_and(|id| installation.replication.contains(id));
        let was_promoted = servers.iter().any(|server| is_known(&server.former) && !is_known(&server.id));
        installation.replication = servers.into_iter().filter_map(|server| server.id).collect();
        Ok(match self.profile() {
            Some(Profile::Disk) if !was_promoted => Losses::HaveToBeAccepted,
            _ => Losses::AreExpected,
        })
    }

    /// The life of the data that is known; empty before the first look.
    pub(crate) fn life(&self) -> String {
        self.witness.installation().life.clone()
    }

    /// Takes the row as it is now. Returns whether the one that was known is gone.
    pub(crate) fn take_row(&self, row: Row) -> bool {
        let (_, _, life, run_id, jobs) = row;
        let mut known = self.witness.installation();
        let loss = (!run_id.is_empty()).then_some(Loss { run_id, jobs });
        if loss != known.loss {
            match &loss {
                Some(loss) => tracing::error!(
                    run_id = loss.run_id,
                    jobs = loss.jobs,
                    "the store has lost accepted jobs, at least so many; submits are refused until the loss is accepted: `ringback audit --accept-loss`"
                ),
                None => tracing::warn!("the loss of jobs is accepted; submits go on"),
            }
        }
        let is_gone = !known.life.is_empty() && known.life != life;
        if is_gone {
            tracing::error!(
                "the store is not the one that it was: its installation is gone, and a new one in its place"
            );
        }
        (known.loss, known.life) = (loss, life);
        is_gone
    }

    /// Looks at one shard of which something is known, all in turn. Returns whether it has lost jobs.
    pub(crate) async fn has_next_shard_lost(&self) -> Result<bool, StoreError> {
        let Some(shard) = self.witness.next() else { return Ok(false) };
        let known = self.witness.known(shard);
        let (accepted, _run_id): (u64, String) = self.ask(&script::ACCEPTED, shard, None::<u8>).await?;
        self.witness.saw(shard, known, accepted);
        // A loss that is noted already is looked at again by those who prepare the store.
        Ok(accepted < known.accepted)
    }

    /// Looks at all shards of which something is known, and takes note of what they have lost.
    pub(crate) async fn note_losses(&self, losses: Losses) -> Result<(), StoreError> {
        for shard in (0..self.options.shards).map(Shard) {
            let known = self.witness.known(shard);
            if known.accepted == 0 {
                continue;
            }
            let (accepted, run_id): (u64, String) =
                self.run_at(&script::ACCEPTED, self.keys.shard(shard), |_| {}).await?;
            if accepted < known.accepted {
                self.note_loss(shard, known, (accepted, run_id), losses).await?;
            }
        }
        Ok(())
    }

    async fn note_loss(
        &self,
        shard: Shard,
        known: Known,
        (accepted, run_id): (u64, String),
        losses: Losses,
    ) -> Result<(), StoreError> {
        if losses == Losses::HaveToBeAccepted {
            let jobs = self.witness.miss(shard, accepted);
            let installation = self.keys.installation();
            let row = self.run_at(&script::LOSE, &installation, |cmd| {
                cmd.arg(&run_id).arg(jobs);
            });
            self.take_row(row.await?);
            if self.loss().is_some() {
                return Ok(());
            }
        }
        let jobs = known.accepted - accepted;
        tracing::error!(
            shard = shard.0,
            jobs,
            "the store has lost accepted jobs of a shard, at least so many"
        );
        self.witness.forget(shard, accepted);
        Ok(())
    }
}
