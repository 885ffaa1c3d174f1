//! The schedule of faults: which, when and for how long, from a seed. Each is written to the history before it is made
//! and after it has ended.

mod data;
mod master;
mod names;
mod network;
mod partition;
mod process;
mod redis;
mod slot;

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_testkit::history::{Entry, Fault, FaultClass, Healed, History};
use tokio::time::{Instant, sleep, sleep_until};

use crate::clients::Clients;
use crate::clock;
use crate::fault::{Kind, Target};
use crate::installation::Installation;
use crate::receiver::{Mood, Receiver};

/// How long after the start the first fault comes.
const FIRST: Duration = Duration::from_millis(500);

/// The targets of the faults of a run.
pub(crate) struct Faults {
    pub(crate) installation: Arc<Installation>,
    pub(crate) receiver: Arc<Receiver>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) until: Instant,
}

/// A fault that has begun.
pub(crate) struct RunningFault<'a> {
    history: &'a History,
    f: u64,
}

impl<'a> RunningFault<'a> {
    pub(crate) fn new(history: &'a History, kind: &str, class: FaultClass, pid: Option<u32>) -> Self {
        let f = history.next();
        history.write(&Entry::Fault(Fault { t: history.t(), f, kind, class, pid }));
        Self { history, f }
    }

    pub(crate) fn healed(self) {
        self.history.write(&Entry::Healed(Healed { t: self.history.t(), f: self.f }));
    }
}

impl Faults {
    /// Makes faults until the load ends, and returns when the last one has ended. Two schedules run at the same time.
    /// Their kinds differ, so that a target has only one fault at a time.
    pub(crate) async fn run(self, seed: u64) {
        tokio::join!(self.schedule(0, seed), self.schedule(1, seed));
    }

    async fn schedule(&self, number: u64, seed: u64) {
        let is_of = |kind: &Kind| kind.schedule() == number;
        let kinds: Vec<_> = self.kinds.iter().copied().filter(is_of).collect();
        let mut rng = StdRng::seed_from_u64(seed ^ (9 << 48 | number << 40));
        sleep(FIRST).await;
        while !kinds.is_empty() && Instant::now() < self.until {
            let kind = kinds[rng.random_range(0..kinds.len())];
            // The random choices of a fault do not depend on how long it took.
            let mut own = StdRng::seed_from_u64(rng.random());
            self.make(kind, &mut own).await;
            let pause = Duration::from_millis(rng.random_range(100..1_200));
            sleep_until((Instant::now() + pause).min(self.until)).await;
        }
    }

    async fn make(&self, kind: Kind, rng: &mut StdRng) {
        match kind.target() {
            Target::Process(what, role) => {
                process::make(&self.installation, kind, what, role, rng).await;
            }
            Target::Redis => redis::make(&self.installation, kind, rng).await,
            Target::Network => network::make(&self.installation, kind, rng).await,
            Target::Disk => self.disk(rng).await,
            Target::Receiver => self.receiver(kind, rng).await,
            Target::Data => data::make(&self.installation, &self.clients.api, kind, rng).await,
            Target::Clock => self.clock(kind, rng).await,
            Target::Names => names::make(&self.installation, rng).await,
            Target::Master => master::make(&self.installation, kind, rng).await,
            Target::Sentinel => master::kill_sentinel(&self.installation, rng).await,
            Target::Slot => slot::make(&self.installation, rng).await,
            Target::Links if kind == Kind::NoMajority => partition::part_all(&self.installation, rng).await,
            Target::Links => partition::make(&self.installation, rng).await,
        }
    }

    /// Fills the embedded store's disk, except 0 to 2 MiB, for some seconds. Does nothing without a disk of its own.
    async fn disk(&self, rng: &mut StdRng) {
        let Some(disk) = &self.installation.disk else { return };
        let begun =
            RunningFault::new(&self.installation.history, Kind::FullDisk.name(), FaultClass::Store, None);
        let (file, left) = (disk.0.join("filler"), rng.random_range(0..3_u64) << 20);
        if let Ok(free) = disk.free() {
            // As much as fits is written, so a failure to write the rest does not matter.
            let _ =
                std::fs::write(&file, vec![1; usize::try_from(free.saturating_sub(left)).expect("it fits")]);
        }
        sleep(Duration::from_millis(rng.random_range(500..3_000))).await;
        let _ = std::fs::remove_file(&file);
        begun.healed();
    }

    /// Steps the clock of Redis by up to 8 seconds, and later back. Does nothing if the clock cannot be stepped.
    async fn clock(&self, kind: Kind, rng: &mut StdRng) {
        let Some(seen) = &self.installation.clock else { return };
        let seconds = rng.random_range(1.0..8.0) * if kind == Kind::ClockBack { -1.0 } else { 1.0 };
        let begun = RunningFault::new(&self.installation.history, kind.name(), kind.class(), None);
        clock::step(&self.installation, seen, (seconds * 1e6) as i64).await;
        sleep(Duration::from_millis(rng.random_range(500..4_000))).await;
        clock::step(&self.installation, seen, 0).await;
        begun.healed();
    }

    async fn receiver(&self, kind: Kind, rng: &mut StdRng) {
        let begun = RunningFault::new(&self.installation.history, kind.name(), kind.class(), None);
        self.receiver.set_mood(match kind {
            Kind::Receiver500 => Mood::Errors,
            Kind::ReceiverHangs => Mood::Hangs,
            Kind::ReceiverResets => Mood::Resets,
            _ => Mood::Slow,
        });
        sleep(Duration::from_millis(rng.random_range(200..2_000))).await;
        self.receiver.set_mood(Mood::Fine);
        begun.healed();
    }
}
