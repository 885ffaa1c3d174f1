//! The store on Redis: one Lua script per edge. This file turns an edge's arguments into a
//! script call and its reply into values; `layout` knows how records are packed, the
//! prelude in lua/ where they lie, `topology` which server to ask.

#![expect(missing_docs, reason = "`ringback_store::Store` documents the calls that it passes on")]

mod arrive;
mod attempts;
mod audit;
mod check;
mod codec;
mod dead;
mod events;
mod layout;
mod moves;
mod outbox;
mod page;
mod policies;
mod pull;
mod reserve;
mod revivals;
mod script;
mod settle;
mod topics;
mod topology;
mod wake;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rand::rngs::StdRng;
use redis::{Cmd, Value};
use ringback_core::clock::millis_up;
use ringback_core::contract::{
    Cancelled, Epoch, Lease, LiveCarriers, Options, Pass, Profile, Recovered, Renewed, Shard, Stats,
    StoreError,
};
use ringback_core::job::{Job, JobKey};
use ringback_core::limits::MAX_LOST;
use ringback_core::state::State;
use tokio::time::Instant;

pub use self::events::Events;
use self::layout::{Head, Keys};
pub use self::policies::PolicyChanges;
use self::script::{Script, reply};
pub use self::topology::Address;
use self::topology::Topology;
pub use self::wake::Wakes;

/// About what a tombstone takes, with its share of the hash it lies in.
const TOMBSTONE_BYTES: u64 = 104;

pub struct RedisStore {
    topology: Topology,
    keys: Keys,
    options: Options,
    /// Known once the store was found fit.
    profile: RwLock<Option<Profile>>,
}

impl RedisStore {
    pub fn open(options: Options) -> Result<Self, StoreError> {
        let topology = Topology::open(&options.url, options.call_timeout)?;
        let keys = Keys::new(&options.prefix, options.shards);
        Ok(Self { topology, keys, options, profile: RwLock::default() })
    }

    pub fn kind(&self) -> &'static str {
        self.topology.kind()
    }

    pub fn profile(&self) -> Option<Profile> {
        *self.profile.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the servers and what is installed there. Until it has succeeded once, every
    /// edge answers [`StoreError::Unprepared`].
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let profile = check::servers(&self.topology).await?;
        let key = self.keys.installation();
        let args = |cmd: &mut Cmd| {
            cmd.arg(layout::VERSION).arg(self.options.shards);
        };
        let mut stored = reply::list(self.run_at(&script::INSTALL, &key, args).await?)?.into_iter();
        let mut next =
            || stored.next().ok_or(StoreError::Unreadable("an installation")).and_then(reply::text);
        let (version, shards) = (next()?, next()?);
        if version != layout::VERSION.to_string() {
            let ours = layout::VERSION;
            return Err(StoreError::Unfit(format!(
                "the store has layout {version}; this version reads layout {ours} only; set another RINGBACK_PREFIX, or use the version that wrote it"
            )));
        }
        if shards != self.options.shards.to_string() {
            return Err(self.options.shard_mismatch(shards));
        }
        *self.profile.write().unwrap_or_else(PoisonError::into_inner) = Some(profile);
        Ok(())
    }

    pub async fn memory_share(&self) -> Result<f64, StoreError> {
        check::memory_share(&self.topology).await
    }

    pub async fn ping(&self) -> Result<(), StoreError> {
        // PING tells of a full disk (MISCONF), the role of a fail-over that left us behind.
        self.topology.call(&redis::cmd("PING")).await?;
        check::masters(&self.topology).await
    }

    /// Runs a script on a shard.
    async fn run(&self, script: &Script, shard: Shard, args: impl Fn(&mut Cmd)) -> Result<Value, StoreError> {
        self.prepared_once()?;
        self.run_at(script, self.keys.shard(shard), args).await
    }

    /// Before that nothing is asked.
    fn prepared_once(&self) -> Result<(), StoreError> {
        self.profile().map(drop).ok_or(StoreError::Unprepared)
    }

    /// As a function; the library is loaded when the server does not have it, as it has not
    /// at the first start, after a flush, and in a new version.
    async fn run_at(&self, script: &Script, key: &str, args: impl Fn(&mut Cmd)) -> Result<Value, StoreError> {
        let mut cmd = script.as_function(key);
        args(&mut cmd);
        let answer = self.topology.call(&cmd).await;
        if !answer.as_ref().is_err_and(is_not_loaded) {
            return answer;
        }
        tracing::debug!(script = script.name(), "the store lacks the function library; sending it");
        if let Err(error) = self.topology.call_at(&script::load(), key).await {
            // Memory may be full, and then what drains must run all the same.
            tracing::debug!(%error, "the function library cannot be loaded; running it as a script");
            cmd = script.as_text(key);
            args(&mut cmd);
        }
        self.topology.call(&cmd).await
    }

    pub async fn get(&self, shard: Shard, key: &JobKey) -> Result<Option<Job>, StoreError> {
        let answer = self.run(&script::GET, shard, |cmd| {
            cmd.arg(&key.locator().0);
        });
        let mut parts = reply::list(answer.await?)?.into_iter();
        match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => Ok(None),
            (Some(tombstone), None, _) => {
                layout::parse_tombstone(reply::bytes(tombstone)?, key.clone()).map(Some)
            }
            (Some(state), Some(run), Some(start)) => {
                let head = Head::parse(
                    codec::state(reply::int(&state)?)?,
                    reply::bytes(run)?,
                    &reply::bytes(start)?,
                )?;
                Ok(Some(head.into_job(key.clone())))
            }
            _ => Err(StoreError::Unreadable("a get's answer")),
        }
    }

    pub async fn cancel(&self, shard: Shard, key: &JobKey) -> Result<Cancelled, StoreError> {
        let answer = self.run(&script::CANCEL, shard, |cmd| {
            cmd.arg(&key.locator().0);
            self.keep(cmd);
        });
        let parts = reply::list(answer.await?)?;
        let [code, unknown] = parts.as_slice() else {
            return Err(StoreError::Unreadable("a cancel's answer"));
        };
        let unknown = reply::int(unknown)? == 1;
        match reply::int(code)? {
            0 => Ok(Cancelled::Unknown),
            code => match codec::state(code)? {
                State::Cancelled => Ok(Cancelled::Cancelled { in_flight_unknown: unknown }),
                State::Reserved => Ok(Cancelled::Requested { in_flight_unknown: unknown }),
                State::Done => Ok(Cancelled::TooLate),
                State::Delayed | State::Ready | State::Dead => {
                    Err(StoreError::Unreadable("a cancel's answer"))
                }
            },
        }
    }

    fn keep(&self, cmd: &mut Cmd) {
        cmd.arg(millis_up(self.options.keep_done)).arg(self.options.tombstones(TOMBSTONE_BYTES));
    }

    pub async fn heartbeat(&self, carrier: &str, ttl: Duration) -> Result<LiveCarriers, StoreError> {
        self.prepared_once()?;
        let args = |cmd: &mut Cmd| {
            cmd.arg(carrier).arg(millis_up(ttl));
        };
        let mut parts =
            reply::list(self.run_at(&script::MEMBERS, &self.keys.installation(), args).await?)?.into_iter();
        let first = parts.next().ok_or(StoreError::Unreadable("the carriers"))?;
        let next_redrive = parts.next().ok_or(StoreError::Unreadable("the carriers"))?;
        let mut carriers = parts.map(reply::text).collect::<Result<Vec<_>, _>>()?;
        // They come by when they run out, which changes with every heartbeat.
        carriers.sort_unstable();
        let next_change = u64::try_from(reply::int(&first)?).ok().map(Duration::from_millis);
        let next_redrive = u64::try_from(reply::int(&next_redrive)?).ok().map(Duration::from_millis);
        Ok(LiveCarriers { carriers, next_change, next_redrive })
    }

    pub async fn claim(&self, shard: Shard, carrier: &str) -> Result<Epoch, StoreError> {
        let answer = self.run(&script::CLAIM, shard, |cmd| {
            cmd.arg(carrier);
        });
        reply::text(answer.await?).map(Epoch)
    }

    pub async fn release_shard(&self, shard: Shard, epoch: &Epoch) -> Result<(), StoreError> {
        let answer = self.run(&script::YIELD, shard, |cmd| {
            cmd.arg(&epoch.0);
        });
        answer.await.map(drop)
    }

    pub async fn promote(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Pass, StoreError> {
        self.pass(&script::PROMOTE, shard, epoch, limit, floor, |_| {}).await
    }

    pub async fn recover(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Recovered, StoreError> {
        let keep = |cmd: &mut Cmd| {
            self.keep(cmd);
            cmd.arg(MAX_LOST);
        };
        let (pass, pulled) = self.pass_with(&script::RECOVER, shard, epoch, limit, floor, keep).await?;
        let lapsed = match pulled {
            Some(pulled) => self.lapsed(shard, pulled).await?,
            None => Vec::new(),
        };
        Ok(Recovered { pass, expired: lapsed })
    }

    pub async fn evict(
        &self,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
    ) -> Result<Pass, StoreError> {
        self.pass(&script::EXPIRE, shard, epoch, limit, floor, |_| {}).await
    }

    /// One bounded pass of a carrier over a shard.
    async fn pass(
        &self,
        script: &Script,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
        more: impl Fn(&mut Cmd),
    ) -> Result<Pass, StoreError> {
        self.pass_with(script, shard, epoch, limit, floor, more).await.map(|(pass, _)| pass)
    }

    /// The same, and what the script answers beside the pass.
    async fn pass_with(
        &self,
        script: &Script,
        shard: Shard,
        epoch: &Epoch,
        limit: u32,
        floor: Duration,
        more: impl Fn(&mut Cmd),
    ) -> Result<(Pass, Option<Value>), StoreError> {
        let answer = self.run(script, shard, |cmd| {
            cmd.arg(&epoch.0).arg(limit).arg(millis_up(floor)).arg(millis_up(self.options.keep_dead));
            more(cmd);
        });
        let mut parts = reply::list(answer.await?)?;
        if let [_] = parts.as_slice() {
            return Ok((Pass::Fenced, None));
        }
        let beside = (parts.len() > 6).then(|| parts.remove(6));
        let [moved, other, due, lease, dead, tell] = parts.as_slice() else {
            return Err(StoreError::Unreadable("a pass's answer"));
        };
        let wait =
            |value| Ok::<_, StoreError>(u64::try_from(reply::int(value)?).ok().map(Duration::from_micros));
        let pass = Pass::Held {
            moved: reply::number(moved)?,
            other: reply::number(other)?,
            next_due: wait(due)?,
            next_lease: wait(lease)?,
            next_dead: wait(dead)?,
            next_notice: wait(tell)?,
        };
        Ok((pass, beside))
    }

    pub async fn renew(&self, lease: &mut Lease, by: Duration) -> Result<Renewed, StoreError> {
        let asked = Instant::now();
        let answer = self.run(&script::RENEW, lease.grant().shard, |cmd| {
            cmd.arg(&lease.grant().locator.0).arg(&codec::receipt(lease)).arg(millis_up(by));
        });
        if reply::int(&answer.await?)? < 0 {
            return Ok(Renewed::Stale);
        }
        lease.renewed(asked, by);
        Ok(Renewed::Extended)
    }

    pub async fn stats(&self, shard: Shard) -> Result<Stats, StoreError> {
        let mut parts = reply::list(self.run(&script::STATS, shard, |_| {}).await?)?.into_iter();
        let (Some(ledger), Some(topics), Some(minutes)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(StoreError::Unreadable("the statistics"));
        };
        let untold = parts.next().ok_or(StoreError::Unreadable("the statistics"))?;
        let mut stats = Stats { pending_notices: reply::number(&untold)?, ..Stats::default() };
        for (name, n) in codec::counters(ledger)? {
            match (name.as_str(), State::ALL.into_iter().find(|s| s.name() == name)) {
                (_, Some(state)) => *stats.states.of(state) += n,
                ("purged", None) => stats.states.purged += n,
                ("accepted", None) => stats.accepted += n,
                ("forgotten_early", None) => stats.evicted_early += n,
                _ => {}
            }
        }
        for topic in reply::list(topics)? {
            stats.topics.insert(reply::text(topic)?);
        }
        for minute in reply::list(minutes)? {
            codec::counters(minute)?.iter().for_each(|(name, n)| stats.lateness.add_field(name, *n));
        }
        Ok(stats)
    }

    pub fn wakes(self: &Arc<Self>, rng: StdRng) -> Wakes {
        Wakes::new(Arc::clone(self), rng)
    }
}

/// Whether a call found no function of this name. Redis has no code for it, only these words.
fn is_not_loaded(error: &StoreError) -> bool {
    matches!(error, StoreError::Refused(e) if e.downcast_ref::<redis::RedisError>().and_then(redis::RedisError::detail) == Some("Function not found"))
}
