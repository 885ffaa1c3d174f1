//! `Admission`: makes jobs of what is submitted and imported, and refuses those that the caller may not submit.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use rand::Rng as _;
use rand::rngs::StdRng;
use ringback_core::clock::{Clock, Timestamp};
use ringback_core::job::{ImportJob, JobId, JobKey, NewJob, Topic, Trace};
use ringback_core::store_types::{Token, is_notice_topic};
use ringback_egress::Guard;
use ringback_store::{SharedConfig, Store};
use ringback_wire::{Defaults, Problem, parse_import, parse_job_with_policies, submit_of_notice};
use ulid::Ulid;

use crate::callback_urls::Destinations;
use crate::principal::Principal;
use crate::quotas::Quotas;

/// How many ids are drawn at most until one leads to the wanted shard. With four shards nine of ten do.
const MAX_DRAWS: usize = 8;

/// Decides whether a job is accepted.
pub struct Admission {
    /// How many and how large jobs a tenant may submit.
    pub quotas: Quotas,
    /// Where jobs may go.
    pub destinations: Destinations,
    store: Store,
    policies: SharedConfig,
    clock: Arc<dyn Clock>,
    rng: Mutex<StdRng>,
}

impl Admission {
    /// Decides by the policies and quotas of the shared configuration, which another task keeps up to date, and by the
    /// address guard. `rng` is for the ids of jobs without one, and for tokens.
    pub fn new(
        store: &Store,
        policies: SharedConfig,
        guard: Guard,
        clock: Arc<dyn Clock>,
        rng: StdRng,
    ) -> Self {
        Self {
            quotas: Quotas::new(store.clone(), policies.clone(), Arc::clone(&clock)),
            destinations: Destinations::new(guard),
            store: store.clone(),
            policies,
            clock,
            rng: Mutex::new(rng),
        }
    }

    /// Parses one job, and checks that the caller may submit it. `key`, the caller's idempotency key, is taken for the
    /// id of a job without one, or for the token of a submit that may change a job. Without a key these are random.
    ///
    /// # Errors
    /// What is wrong with the job, why the caller may not submit it, or 503 if the policies are needed and not loaded.
    pub fn parse_job(
        &self,
        json: &[u8],
        trace: Option<Trace>,
        key: &mut Option<String>,
        caller: &Principal,
    ) -> Result<NewJob, Problem> {
        let now = self.clock.now();
        let policies = self.policies.all().ok();
        let key = RefCell::new(key);
        let make_id = &mut |topic: &_| match key.borrow_mut().take() {
            Some(key) => JobId::of_key(&key),
            None => self.make_job_id(topic, now),
        };
        let make_token = &mut || match key.borrow_mut().take() {
            Some(key) => Token::of_key(&key),
            None => self.token(),
        };
        let defaults = Defaults { now, make_id, make_token, trace, tenant: caller.tenant() };
        let mut job = parse_job_with_policies(json, defaults, policies.as_deref())?;
        caller.check_topic(&job.key.topic)?;
        self.quotas.check_size_and_set_limits(&mut job, caller)?;
        if is_notice_topic(&job.key.topic) {
            return Err(submit_of_notice(&job.key.topic));
        }
        self.destinations.check_job(&job, caller)?;
        Ok(job)
    }

    /// Parses one line of an import, and checks that the caller may import it.
    ///
    /// # Errors
    /// What is wrong with the line, or why the caller may not import it.
    pub fn parse_import(&self, line: &[u8], caller: &Principal) -> Result<ImportJob, Problem> {
        let now = self.clock.now();
        let (make_id, make_token) = (&mut |topic: &_| self.make_job_id(topic, now), &mut || self.token());
        let defaults = Defaults { now, make_id, make_token, trace: None, tenant: None };
        let mut job = parse_import(line, defaults, caller.reach())?;
        caller.check_topic(&job.job.key.topic)?;
        self.quotas.check_size_and_set_limits(&mut job.job, caller)?;
        self.destinations.check_import(&job.job, caller)?;
        Ok(job)
    }

    /// A new id for a job of a topic. Those that are made in the same few milliseconds mostly lead to one shard, so that
    /// their submits share calls of the store.
    fn make_job_id(&self, topic: &Topic, now: Timestamp) -> JobId {
        let wanted = self.store.shard_for_new_jobs(now);
        let mut key = JobKey { topic: topic.clone(), id: self.make_id(now) };
        for _ in 1..MAX_DRAWS {
            if wanted.is_none_or(|wanted| self.store.shard_of(&key) == wanted) {
                break;
            }
            key.id = self.make_id(now);
        }
        key.id
    }

    /// A new token, by which the store recognises a repeated call.
    pub fn token(&self) -> Token {
        let mut random = [0; 8];
        self.fill(&mut random);
        Token(random)
    }

    /// A new id, which sorts after those of earlier times.
    pub fn make_id(&self, now: Timestamp) -> JobId {
        let mut random = [0; 16];
        self.fill(&mut random);
        let id = Ulid::from_parts(now.as_millis(), u128::from_be_bytes(random));
        id.to_string().parse().expect("a ULID lies within the alphabet of ids")
    }

    fn fill(&self, random: &mut [u8]) {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(random);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use rand::SeedableRng as _;
    use ringback_core::clock::SystemClock;
    use ringback_store::settings;

    use super::*;

    #[tokio::test]
    async fn ids_that_are_made_differ_and_sort_by_time() {
        let store = Store::open(settings::defaults(Duration::from_millis(100))).unwrap();
        let (guard, rng) = (Guard::open(), StdRng::seed_from_u64(1));
        let admission = Admission::new(&store, SharedConfig::default(), guard, Arc::new(SystemClock), rng);
        let (early, late) = (Timestamp::from_millis(1_000), Timestamp::from_millis(2_000));
        let (a, b, c) = (admission.make_id(early), admission.make_id(early), admission.make_id(late));
        assert_ne!(a, b);
        assert!(a < c && b < c);
        assert_eq!(a.as_str().len(), 26);
    }

    #[tokio::test]
    async fn ids_that_are_made_at_one_time_lead_to_one_shard_and_later_ones_to_the_next() {
        let store = Store::open(settings::defaults(Duration::from_millis(100))).unwrap();
        let (guard, rng) = (Guard::open(), StdRng::seed_from_u64(1));
        let admission = Admission::new(&store, SharedConfig::default(), guard, Arc::new(SystemClock), rng);
        let topic: Topic = "orders".parse().unwrap();
        for ms in [0, 4, 8, 12] {
            let now = Timestamp::from_millis(1_000 + ms);
            let wanted = store.shard_for_new_jobs(now).expect("the store is Redis");
            let leads = |_: &i32| {
                let id = admission.make_job_id(&topic, now);
                store.shard_of(&JobKey { topic: topic.clone(), id }) == wanted
            };
            let n = (0..100).filter(leads).count();
            assert!((75..100).contains(&n), "{n} of 100 lead to {wanted}");
        }
        let shards: HashSet<_> =
            (0..4).map(|n| store.shard_for_new_jobs(Timestamp::from_millis(4 * n))).collect();
        assert_eq!(shards.len(), 4, "all shards in turn");
    }
}
