//! The shared configuration: this process's copy of the policies of topics, the keys of callers, the quotas of tenants
//! and the credentials. It is read again when a change is announced, and every few seconds in case an announcement was
//! lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rand::rngs::StdRng;
use ringback_core::access::{Quota, QuotaOf};
use ringback_core::credential::{Credential, CredentialKey};
use ringback_core::job::{Tenant, Topic};
use ringback_core::store_types::PolicyVersion;
use ringback_core::topic_policy::{Policies, Policy};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::config_entries::{AccessKeys, Credentials, Entries, Quotas};
use crate::store::Store;

/// How often the version is checked without an announcement.
const FLOOR: Duration = Duration::from_secs(5);
/// The shortest pause between two readings. Changes in between are read together.
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause between two readings. A pause is four times as long as the reading before it.
const MAX_PAUSE: Duration = Duration::from_millis(250);
/// When to try again if the first reading fails.
const FIRST_RETRY: Duration = Duration::from_millis(25);
/// When to try again if a later reading fails.
const RETRY: Duration = Duration::from_secs(1);

/// The shared configuration as this process knows it. Cheap to clone; all clones share the same copy.
#[derive(Clone, Debug)]
pub struct SharedConfig(Arc<watch::Sender<Option<ConfigSnapshot>>>);

#[derive(Clone, Debug)]
struct ConfigSnapshot {
    version: PolicyVersion,
    policies: Arc<Policies>,
    /// Topics that have a policy which cannot be read.
    unreadable: HashSet<Topic>,
    keys: Arc<AccessKeys>,
    quotas: Arc<Quotas>,
    credentials: Arc<Credentials>,
    /// Whether any policy says which attempts are logged.
    is_any_logging: bool,
}

impl ConfigSnapshot {
    fn new(
        version: PolicyVersion,
        Entries { policies, unreadable, keys, quotas, credentials }: Entries,
    ) -> Self {
        let is_any_logging = policies.values().any(|policy| policy.attempts.is_some());
        let (policies, keys, quotas) = (Arc::new(policies), Arc::new(keys), Arc::new(quotas));
        let credentials = Arc::new(credentials);
        Self { version, policies, unreadable, keys, quotas, credentials, is_any_logging }
    }
}

impl Default for SharedConfig {
    /// A configuration that is not loaded yet.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

/// The future readings of a [`SharedConfig`].
#[derive(Debug)]
pub struct ConfigReadings(watch::Receiver<Option<ConfigSnapshot>>);

impl ConfigReadings {
    /// Waits until the shared configuration was read again with changes; for ever if no copy is left. Safe to cancel.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            // Nobody has the shared configuration any more.
            std::future::pending::<()>().await;
        }
    }
}

/// The policies are not loaded yet, so the policy of a topic is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policies of the topics are not known yet")]
pub struct ConfigUnknown;

impl SharedConfig {
    #[cfg(test)]
    pub(crate) fn of(policies: Policies) -> Self {
        let entries = Entries { policies, ..Entries::default() };
        Self(Arc::new(watch::Sender::new(Some(ConfigSnapshot::new(PolicyVersion(1), entries)))))
    }

    /// All policies that can be read.
    pub fn all(&self) -> Result<Arc<Policies>, ConfigUnknown> {
        self.part(|known| Arc::clone(&known.policies))
    }

    /// The policy of a topic; `None` if it has none or its policy [cannot be read](Self::is_unreadable).
    pub fn get(&self, topic: &Topic) -> Result<Option<Arc<Policy>>, ConfigUnknown> {
        // Most installations have none.
        self.part(|known| if known.policies.is_empty() { None } else { known.policies.get(topic).cloned() })
    }

    /// The keys of callers.
    pub fn keys(&self) -> Result<Arc<AccessKeys>, ConfigUnknown> {
        self.part(|known| Arc::clone(&known.keys))
    }

    /// The quotas of tenants.
    pub fn quotas(&self) -> Result<Arc<Quotas>, ConfigUnknown> {
        self.part(|known| Arc::clone(&known.quotas))
    }

    /// The credentials that policies refer to.
    pub fn credentials(&self) -> Result<Arc<Credentials>, ConfigUnknown> {
        self.part(|known| Arc::clone(&known.credentials))
    }

    /// A credential; `None` if there is none with this key, or before the first reading.
    pub fn credential(&self, key: &CredentialKey) -> Option<Arc<Credential>> {
        self.0.borrow().as_ref()?.credentials.get(key).cloned()
    }

    /// The quota of a tenant: its own, or that for all tenants without one; `None` if there is neither.
    pub fn quota(&self, tenant: &Tenant) -> Result<Option<Quota>, ConfigUnknown> {
        let quotas = self.quotas()?;
        if quotas.is_empty() {
            return Ok(None);
        }
        let own = quotas.get(&QuotaOf::Tenant(tenant.clone()));
        Ok(own.or_else(|| quotas.get(&QuotaOf::Others)).copied())
    }

    fn part<T>(&self, read: impl FnOnce(&ConfigSnapshot) -> T) -> Result<T, ConfigUnknown> {
        self.0.borrow().as_ref().map(read).ok_or(ConfigUnknown)
    }

    /// Whether a topic has a policy that cannot be read, so that nothing of it is known. False until the first reading.
    pub fn is_unreadable(&self, topic: &Topic) -> bool {
        self.0.borrow().as_ref().is_some_and(|known| known.unreadable.contains(topic))
    }

    /// Whether any policy says which attempts are logged; false before the first reading.
    pub fn is_any_logging(&self) -> bool {
        self.0.borrow().as_ref().is_some_and(|known| known.is_any_logging)
    }

    /// Waits until the shared configuration has been read for the first time.
    pub async fn known(&self) {
        // It cannot fail: the sender is held here.
        self.0.subscribe().wait_for(Option::is_some).await.ok();
    }

    /// Waits until this version, or a later one, has been read.
    pub async fn reached(&self, version: PolicyVersion) {
        let reached =
            |known: &Option<ConfigSnapshot>| known.as_ref().is_some_and(|known| known.version >= version);
        self.0.subscribe().wait_for(reached).await.ok();
    }

    /// The readings of the shared configuration from now on.
    pub fn readings(&self) -> ConfigReadings {
        ConfigReadings(self.0.subscribe())
    }

    /// Keeps the shared configuration up to date, for ever. Calls `known` after the first reading. `rng` is for
    /// [`Store::policy_changes`].
    pub async fn keep(self, store: Store, rng: StdRng, known: impl FnOnce() + Send) {
        let (mut changes, mut version, mut known) = (store.policy_changes(rng), None, Some(known));
        let mut look_at = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = changes.next() => {}
                () = sleep_until(look_at) => {}
            }
            // One reading covers all announcements that have arrived.
            while changes.next().now_or_never().is_some() {}
            let started = Instant::now();
            let wait = self.read(&store, &mut version).await;
            look_at = Instant::now() + wait;
            if version.is_some() {
                known.take().into_iter().for_each(|known| known());
                sleep((4 * started.elapsed()).clamp(MIN_PAUSE, MAX_PAUSE)).await;
            }
        }
    }

    /// Reads all entries if their version is not `known`; keeps the last ones after an error. Returns the wait after
    /// it.
    async fn read(&self, store: &Store, known: &mut Option<PolicyVersion>) -> Duration {
        match store.read_entries(*known).await {
            Ok(None) => FLOOR,
            Ok(Some((version, entries))) => {
                let (topics, keys) = (entries.policies.len(), entries.keys.len());
                tracing::debug!(
                    topics,
                    keys,
                    "read the policies of the topics, the keys of callers, the quotas of tenants and the credentials"
                );
                *known = Some(version);
                self.0.send_replace(Some(ConfigSnapshot::new(version, entries)));
                FLOOR
            }
            Err(error) => {
                tracing::debug!(%error, "the policies of the topics cannot be read; trying again");
                // The process cannot work before the first reading. Later the last one counts.
                if known.is_none() { FIRST_RETRY } else { RETRY }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ringback_wire::parse_policy;

    use super::*;

    #[test]
    fn the_shared_configuration_knows_which_topics_have_a_policy_that_cannot_be_read() {
        let topic = |name: &str| name.parse::<Topic>().unwrap();
        let unreadable = HashSet::from([topic("b")]);
        let known = ConfigSnapshot::new(PolicyVersion(1), Entries { unreadable, ..Entries::default() });
        let shared = SharedConfig(Arc::new(watch::Sender::new(Some(known))));
        assert!(shared.is_unreadable(&topic("b")) && !shared.is_unreadable(&topic("a")));
    }

    #[test]
    fn the_shared_configuration_knows_whether_any_topic_says_which_attempts_are_logged() {
        assert!(!SharedConfig::default().is_any_logging());
        for (written, is_any) in [(r#"{"timeout":"5s"}"#, false), (r#"{"attempts":"off"}"#, true)] {
            let policy = parse_policy(written.as_bytes()).unwrap();
            let shared = SharedConfig::of(Policies::from([("t".parse().unwrap(), policy.into())]));
            assert_eq!(shared.is_any_logging(), is_any, "{written}");
        }
    }
}
