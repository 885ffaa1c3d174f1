//! Granting leases to a notifier: the arguments of reserve, and how its answer, which pull shares, becomes leases. Large
//! payloads are read after the script, which would run too long with them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use redis::{Cmd, Value};
use ringback_core::clock::millis_up;
use ringback_core::job::{DEFAULT_TIMEOUT, Delivery, JobKey, Locator};
use ringback_core::lane::{GrantedBatch, Lane, SettleHint};
use ringback_core::limits::MAX_LEASE_STRETCH;
use ringback_core::state::State;
use ringback_core::store_types::{
    Lease, LeaseGrant, Receipt, Reserve, Reserved, Shard, StoreClock, StoreError, Waiting, payload,
};
use tokio::time::Instant;

use crate::lane_ids::LaneKey;
use crate::record::{self, FixedFields, OptionalFields, doubles};
use crate::redis_store::RedisStore;
use crate::reply::{self, take};
use crate::script;
use crate::topology::Confirmation;

/// One call reserves no more jobs once those that it has reserved have this many bytes, large payloads included.
pub(crate) const RESERVE_BYTES: usize = 1024 * 1024;
/// Flags in the answer: more jobs can be taken, the shard's events are watched, lanes were deferred, and there may be
/// more only in deferred lanes.
const MORE: i64 = 1;
const WATCHED: i64 = 2;
const DEFERRED: i64 = 4;
const LATER: i64 = 8;

const UNREADABLE: StoreError = StoreError::Unreadable("the answer of a reserve");

/// Adds the arguments of reserve.lua, and returns their number. A lane that got another id because its own was taken has
/// the limit of all lanes instead of its own.
pub(crate) fn push_reserve(cmd: &mut Cmd, ask: &Reserve<'_>, key: LaneKey) -> usize {
    let with_ids = |limits: &[(String, usize)]| -> Vec<_> {
        limits.iter().filter_map(|(name, limit)| Some((key.id(Lane::parse(name)?, 0), *limit))).collect()
    };
    let (lanes, admitted) = (with_ids(&ask.lane_limits), with_ids(&ask.admitted));
    let millis = |time| millis_up(time) as f64;
    let numbers = [
        ask.limit as f64,
        ask.lane_limit as f64,
        millis(ask.margin),
        millis(DEFAULT_TIMEOUT),
        millis(MAX_LEASE_STRETCH),
        RESERVE_BYTES as f64,
        ask.origin_limit as f64,
        ask.tenant_limit as f64,
        waiting(ask),
        lanes.len() as f64,
        admitted.len() as f64,
    ];
    cmd.arg(ask.caller).arg(&ask.sequence.to_be_bytes()).arg(&ask.bits).arg(doubles(numbers));
    for (lane, limit) in lanes.iter().chain(&admitted) {
        cmd.arg(&lane.0).arg(limit);
    }
    for (group, limit) in &ask.group_limits {
        cmd.arg(group).arg(limit);
    }
    4 + 2 * (lanes.len() + admitted.len() + ask.group_limits.len())
}

/// Returns the number under which a caller waits for due jobs, negative if it no longer waits, 0 if it does not wait.
fn waiting(ask: &Reserve<'_>) -> f64 {
    let mut hasher = DefaultHasher::new();
    ask.caller.hash(&mut hasher);
    // A shard keeps it as a double, which holds whole numbers of 53 bits.
    let number = ((hasher.finish() >> 12) + 1) as f64;
    match ask.waiting {
        Waiting::No => 0.0,
        Waiting::Yes => number,
        Waiting::NoLonger => -number,
    }
}

/// A granted job as it is in a script's answer.
pub(crate) struct Granted {
    pub(crate) locator: Locator,
    /// The lane's name.
    pub(crate) lane: Arc<str>,
    pub(crate) job_state: Bytes,
    pub(crate) record: Bytes,
}

/// The answer of a script that grants leases.
pub(crate) struct Grant {
    pub(crate) now_us: u64,
    due_in: Option<Duration>,
    pub(crate) has_more: bool,
    is_watched: bool,
    has_deferred: bool,
    is_more_later: bool,
    full: Vec<String>,
    pub(crate) jobs: Vec<Granted>,
}

impl Grant {
    /// Reads an answer of `prelude/grants.lua`. Fails with `Unreadable` if it has another form.
    pub(crate) fn parse(answer: Value) -> Result<Self, StoreError> {
        let mut parts = take::list(answer)?.into_iter();
        let (Some(now), Some(due), Some(flags), Some(full)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(UNREADABLE);
        };
        let mut jobs = Vec::new();
        for group in parts {
            let mut group = take::list(group)?.into_iter();
            let (Some(lane), Some(job_state)) = (group.next(), group.next()) else { return Err(UNREADABLE) };
            let lane = Arc::<str>::from(reply::read::<String>(lane, "a lane's name")?);
            let job_state = take::bytes(job_state)?;
            while let (Some(locator), Some(record)) = (group.next(), group.next()) {
                let locator = record::locator(&take::bytes(locator)?)?;
                let (lane, job_state) = (Arc::clone(&lane), job_state.clone());
                jobs.push(Granted { locator, lane, job_state, record: take::bytes(record)? });
            }
        }
        let (now_us, flags) = (reply::read(now, "the time of a reserve")?, take::int(&flags)?);
        Ok(Self {
            now_us,
            due_in: u64::try_from(take::int(&due)?).ok().map(Duration::from_micros),
            has_more: flags & MORE != 0,
            is_watched: flags & WATCHED != 0,
            has_deferred: flags & DEFERRED != 0,
            is_more_later: flags & LATER != 0,
            full: reply::read(full, "the full lanes of a reserve")?,
            jobs,
        })
    }
}

impl RedisStore {
    pub async fn reserve(&self, shard: Shard, ask: &Reserve<'_>) -> Result<Reserved, StoreError> {
        let (asked, key) = (Instant::now(), self.lane_key()?);
        let call = self.call(&script::RESERVE, shard).with(|cmd| {
            push_reserve(cmd, ask, key);
        });
        self.reserved(shard, call.run().await?, asked).await
    }

    /// Whether a reserve may find jobs that no wake-up announces, by the fields of the shard and the clock of the server as it
    /// was last seen.
    pub async fn may_give(&self, shard: Shard) -> Result<bool, StoreError> {
        let fields = self.read_fields(shard, Confirmation::None).await?;
        Ok(fields.ready() > 0 || !fields.has_waiter(self.clock.server_us()))
    }

    /// Makes leases of a script's answer; deadlines count from `asked`. Reads large payloads. A job whose payload is gone
    /// is left out: a late success has ended the job, or its lease has run out and another submit has taken its place. A
    /// job that cannot be read is logged and left out.
    pub(crate) async fn reserved(
        &self,
        shard: Shard,
        answer: Value,
        asked: Instant,
    ) -> Result<Reserved, StoreError> {
        let Grant { now_us, due_in, has_more, is_watched, has_deferred, is_more_later, full, jobs } =
            Grant::parse(answer)?;
        let clock = StoreClock { shown_us: now_us, asked };
        // The script ran between the call and its answer. The next call would be in vain if it came too early.
        let ran = asked + asked.elapsed() / 2;
        // All granted jobs count: a job that cannot be read is not settled either.
        let mut sizes: HashMap<u64, usize> = HashMap::new();
        for job in &jobs {
            let number = record::lease_number(&job.job_state).ok_or(StoreError::Unreadable("a job state"))?;
            *sizes.entry(number).or_default() += 1;
        }
        let batch = |(number, size)| (number, Arc::new(GrantedBatch { size, unsettled: size.into() }));
        let batches: HashMap<_, _> = sizes.into_iter().map(batch).collect();
        let lease = async |Granted { locator, lane, job_state, record }| {
            let head = FixedFields::parse(State::Reserved, job_state, &record)?;
            let tail = OptionalFields::parse(&lane, record)?;
            let hint = SettleHint {
                lane: head.lane,
                content: head.content,
                is_external: head.is_external,
                has_tags: head.has_tags,
                token: tail.token,
                batch: batches.get(&head.lease.number).map(Arc::clone).unwrap_or_default(),
            };
            let found = self.delivery(shard, locator, &head, tail).await?;
            let Some((key, delivery)) = found else { return Ok(None) };
            let left = head.deadline.as_millis().saturating_mul(1000).saturating_sub(now_us);
            let grant = LeaseGrant {
                receipt: Receipt { shard, locator, lease: head.lease },
                deadline: asked + Duration::from_micros(left),
                clock,
                hint,
                is_watched,
            };
            Ok::<_, StoreError>(Some(Lease {
                grant,
                response: None,
                success: None,
                key,
                delivery,
                due: head.due,
                first_due: head.first_due,
                created: head.created,
                attempt: head.attempts,
                failures: head.failures,
            }))
        };
        let leases = all_read(shard, jobs.into_iter().map(lease)).await;
        let next_due = due_in.map(|wait| ran + wait);
        let (limited, full): (Vec<_>, Vec<_>) = full.into_iter().partition(|name| name.starts_with('='));
        let limited = limited.iter().filter_map(|entry| limited_lane(entry)).collect();
        // Only the name of a lane has a space: the others are origins and tenants.
        let (full, throttled) = full.into_iter().partition(|name| name.contains(' '));
        Ok(Reserved {
            leases,
            more: has_more,
            is_more_later,
            has_deferred,
            full,
            throttled,
            limited,
            next_due,
        })
    }

    /// Returns a job's key and delivery, and reads its large payload. `None` if that is gone, and the job with it, or is
    /// another one because a submit has taken the job's place. Fails with `Unreadable` if it cannot be unpacked.
    pub(crate) async fn delivery(
        &self,
        shard: Shard,
        locator: Locator,
        head: &FixedFields,
        tail: OptionalFields,
    ) -> Result<Option<(JobKey, Delivery)>, StoreError> {
        let packed = if head.is_external {
            let get = self.command("GET", shard, "a job's payload").arg(self.keys.external(shard, locator));
            let stored: Option<Bytes> = get.run().await?;
            match stored.and_then(|stored| tail.external(stored)) {
                Some(payload) => payload,
                None => return Ok(None),
            }
        } else {
            tail.payload
        };
        let OptionalFields { key, origin, tags, .. } = tail;
        let delivery = payload::unpack(&packed, origin, head.timeout, tags);
        let delivery = delivery.ok_or(StoreError::Unreadable("a job's payload"))?;
        Ok(Some((key, delivery)))
    }
}

/// Reads the entry of a limited lane, `=<ready jobs> <lane>`.
fn limited_lane(entry: &str) -> Option<(String, u32)> {
    let (ready, lane) = entry.strip_prefix('=')?.split_once(' ')?;
    Some((lane.to_owned(), ready.parse().ok()?))
}

/// Reads granted jobs at the same time, so that many large payloads take no longer than one. Leaves out a job that is
/// gone, and one that cannot be read, which is logged: as an error if reading it again will not help, else as a warning.
/// The lease of such a job runs out and the job is recovered.
pub(crate) async fn all_read<T>(
    shard: Shard,
    jobs: impl Iterator<Item = impl Future<Output = Result<Option<T>, StoreError>>>,
) -> Vec<T> {
    let jobs = join_all(jobs).await.into_iter().map(|job| {
        job.unwrap_or_else(|error| {
            if error.is_transient() {
                tracing::warn!(shard = shard.0, %error, "a reserved job was not read; its lease will expire");
            } else {
                tracing::error!(shard = shard.0, %error, "a reserved job cannot be read");
            }
            None
        })
    });
    jobs.flatten().collect()
}
