//! Policies of topics: putting, reading and deleting them, and the policy book, this process's copy of all, with the keys
//! of callers and the quotas of tenants. The book reads them again when a change is announced, and every few seconds in case an announcement
//! was lost.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rand::rngs::StdRng;
use ringback_core::access::{AccessKey, KeyId, MAX_KEYS, MAX_QUOTAS, Quota, QuotaOf};
use ringback_core::clock::Timestamp;
use ringback_core::contract::{BookEntry, PolicyPut, PolicyRows, PolicyVersion, StoreError};
use ringback_core::job::{Tenant, TenantScope, Topic};
use ringback_core::policy::{MAX_POLICIES, Metrics, Policies, Policy};
use ringback_core::wire::{parse_policy, parse_stored_key, parse_stored_quota, written_key, written_quota};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::backend::{Store, dispatch};

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
/// How often a change of a policy is tried, if others change the stored policy meanwhile.
const MAX_TRIES: usize = 8;

/// All topic policies as this process knows them. Cheap to clone; all clones share the same copy.
#[derive(Clone, Debug)]
pub struct PolicyBook(Arc<watch::Sender<Option<Known>>>);

/// The keys of callers, by their hashes.
pub type AccessKeys = HashMap<[u8; 32], Arc<AccessKey>>;

/// The quotas of tenants.
pub type Quotas = BTreeMap<QuotaOf, Quota>;

#[derive(Clone, Debug)]
struct Known {
    version: PolicyVersion,
    policies: Arc<Policies>,
    /// Topics that have a policy which cannot be read.
    unreadable: HashSet<Topic>,
    keys: Arc<AccessKeys>,
    quotas: Quotas,
    /// Whether any policy says which attempts are logged.
    is_any_logging: bool,
}

impl Known {
    fn new(version: PolicyVersion, Entries { policies, unreadable, keys, quotas }: Entries) -> Self {
        let is_any_logging = policies.values().any(|policy| policy.attempts.is_some());
        let (policies, keys) = (Arc::new(policies), Arc::new(keys));
        Self { version, policies, unreadable, keys, quotas, is_any_logging }
    }
}

impl Default for PolicyBook {
    /// A book that is not loaded yet.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

/// The policies are not loaded yet, so the policy of a topic is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policies of the topics are not known yet")]
pub struct PoliciesUnknown;

impl PolicyBook {
    #[cfg(test)]
    pub(crate) fn of(policies: Policies) -> Self {
        let entries = Entries { policies, ..Entries::default() };
        Self(Arc::new(watch::Sender::new(Some(Known::new(PolicyVersion(1), entries)))))
    }

    /// All policies.
    ///
    /// # Errors
    /// Before they were loaded.
    pub fn all(&self) -> Result<Arc<Policies>, PoliciesUnknown> {
        self.0.borrow().as_ref().map(|known| Arc::clone(&known.policies)).ok_or(PoliciesUnknown)
    }

    /// The policy of a topic.
    ///
    /// # Errors
    /// Before the policies were loaded.
    pub fn get(&self, topic: &Topic) -> Result<Option<Arc<Policy>>, PoliciesUnknown> {
        match &*self.0.borrow() {
            // Most installations have none.
            Some(known) if known.policies.is_empty() => Ok(None),
            Some(known) => Ok(known.policies.get(topic).cloned()),
            None => Err(PoliciesUnknown),
        }
    }

    /// The keys of callers.
    ///
    /// # Errors
    /// Before they were loaded, with the policies.
    pub fn keys(&self) -> Result<Arc<AccessKeys>, PoliciesUnknown> {
        self.0.borrow().as_ref().map(|known| Arc::clone(&known.keys)).ok_or(PoliciesUnknown)
    }

    /// The quota of a tenant: its own, or that of all that have none.
    ///
    /// # Errors
    /// Before they were loaded, with the policies.
    pub fn quota(&self, tenant: &Tenant) -> Result<Option<Quota>, PoliciesUnknown> {
        let known = self.0.borrow();
        let quotas = &known.as_ref().ok_or(PoliciesUnknown)?.quotas;
        if quotas.is_empty() {
            return Ok(None);
        }
        let own = quotas.get(&QuotaOf::Tenant(tenant.clone()));
        Ok(own.or_else(|| quotas.get(&QuotaOf::Others)).copied())
    }

    /// Whether a topic has a policy that cannot be read. What it says, such as who signs, is then not known.
    pub fn is_unreadable(&self, topic: &Topic) -> bool {
        self.0.borrow().as_ref().is_some_and(|known| known.unreadable.contains(topic))
    }

    /// Whether any loaded policy says which attempts are logged.
    pub fn is_any_logging(&self) -> bool {
        self.0.borrow().as_ref().is_some_and(|known| known.is_any_logging)
    }

    /// Waits until the policies are loaded.
    pub async fn known(&self) {
        // It cannot fail: the sender is held here.
        self.0.subscribe().wait_for(Option::is_some).await.ok();
    }

    /// Waits until this version, or a later one, is loaded.
    pub async fn reached(&self, version: PolicyVersion) {
        let reached = |known: &Option<Known>| known.as_ref().is_some_and(|known| known.version >= version);
        self.0.subscribe().wait_for(reached).await.ok();
    }

    /// Keeps the policies up to date, for ever. Calls `known` after they were loaded for the first time.
    /// `rng` is that of [`Store::policy_changes`].
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

    /// Reads the policies if they have changed. Returns the time until the next check.
    async fn read(&self, store: &Store, known: &mut Option<PolicyVersion>) -> Duration {
        match store.read_entries(*known).await {
            Ok(None) => FLOOR,
            Ok(Some((version, entries))) => {
                let (topics, keys) = (entries.policies.len(), entries.keys.len());
                tracing::debug!(topics, keys, "read the policies of the topics and the keys of callers");
                *known = Some(version);
                self.0.send_replace(Some(Known::new(version, entries)));
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

impl Store {
    /// Puts the policy of a topic in place of any other, and notifies every [`PolicyBook`].
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn put_policy(&self, topic: &Topic, policy: &Policy) -> Result<PolicyPut, StoreError> {
        let make = |_: Option<&str>| Ok(Ok::<_, Infallible>(policy.clone()));
        let Ok((_, put)) = self.replace_policy(topic, make).await?;
        Ok(put)
    }

    /// Replaces the stored policy of a topic by the one that `make` makes of it. If the stored policy
    /// changes meanwhile, `make` is called again. After some tries the result is [`PolicyPut::Outdated`].
    /// Returns the policy that was put, or the error of `make`.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn change_policy<E>(
        &self,
        topic: &Topic,
        make: impl Fn(Option<&Policy>) -> Result<Policy, E>,
    ) -> Result<Result<(Policy, PolicyPut), E>, StoreError> {
        let make = |stored: Option<&str>| Ok(make(stored.map(parse_stored).transpose()?.as_ref()));
        self.replace_policy(topic, make).await
    }

    /// [`Store::change_policy`] of the text that is stored.
    async fn replace_policy<E>(
        &self,
        topic: &Topic,
        make: impl Fn(Option<&str>) -> Result<Result<Policy, E>, StoreError>,
    ) -> Result<Result<(Policy, PolicyPut), E>, StoreError> {
        let mut tries = 0;
        loop {
            let stored = dispatch!(self.entry(topic.as_str()))?;
            let policy = match make(stored.as_deref())? {
                Ok(policy) => policy,
                Err(error) => return Ok(Err(error)),
            };
            let (name, written, metrics) = (topic.as_str(), policy.written(), policy.metrics);
            let entry = BookEntry { name, written, metrics, limit: MAX_POLICIES };
            let put = dispatch!(self.put_entry(entry, stored.as_deref()))?;
            tries += 1;
            if put != PolicyPut::Outdated || tries == MAX_TRIES {
                return Ok(Ok((policy, put)));
            }
        }
    }

    /// The policy of a topic.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn policy(&self, topic: &Topic) -> Result<Option<Policy>, StoreError> {
        dispatch!(self.entry(topic.as_str()))?.as_deref().map(parse_stored).transpose()
    }

    /// Deletes the policy of a topic; `None` if it had none.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn delete_policy(&self, topic: &Topic) -> Result<Option<PolicyVersion>, StoreError> {
        dispatch!(self.delete_entry(topic.as_str()))
    }

    /// All policies, and a version that they have at least; `None` if the version is still `known`, which
    /// takes only one small read.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn policies(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, Policies)>, StoreError> {
        Ok(self.read_entries(known).await?.map(|(version, entries)| (version, entries.policies)))
    }

    /// All policies of a scope, for a copy that leaves nothing out.
    ///
    /// # Errors
    /// Any [`StoreError`]; unreadable if one of these policies is.
    pub async fn all_policies(&self, scope: &TenantScope) -> Result<Policies, StoreError> {
        let Some((_, Entries { policies, unreadable, .. })) = self.read_entries(None).await? else {
            return Ok(Policies::default());
        };
        if unreadable.iter().any(|topic| scope.has(topic)) {
            return Err(StoreError::Unreadable("the policy of a topic"));
        }
        Ok(policies.into_iter().filter(|(topic, _)| scope.has(topic)).collect())
    }

    /// Adds a key, and notifies every [`PolicyBook`]. Returns the version with it.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn add_key(&self, key: &AccessKey) -> Result<PolicyPut, StoreError> {
        self.put_key(key, None).await
    }

    /// Notes that a key was used. Nothing changes if it was changed or deleted meanwhile.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn note_key_use(&self, key: &AccessKey, at: Timestamp) -> Result<(), StoreError> {
        let used = AccessKey { last_used: Some(at), ..key.clone() };
        self.put_key(&used, Some(&written_key(key))).await.map(drop)
    }

    async fn put_key(&self, key: &AccessKey, replaced: Option<&str>) -> Result<PolicyPut, StoreError> {
        let (name, written) = (name_of_key(&key.id), written_key(key));
        let limit = MAX_POLICIES + MAX_KEYS;
        let entry = BookEntry { name: &name, written: &written, metrics: Metrics::Together, limit };
        dispatch!(self.put_entry(entry, replaced))
    }

    /// Deletes a key; `None` if there is none with this id.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn delete_key(&self, id: &KeyId) -> Result<Option<PolicyVersion>, StoreError> {
        dispatch!(self.delete_entry(&name_of_key(id)))
    }

    /// All keys, in no particular order.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn access_keys(&self) -> Result<Vec<Arc<AccessKey>>, StoreError> {
        let entries = self.read_entries(None).await?;
        Ok(entries.map(|(_, entries)| entries.keys.into_values().collect()).unwrap_or_default())
    }

    /// Sets a quota in place of any other, and notifies every [`PolicyBook`].
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn put_quota(&self, of: &QuotaOf, quota: Quota) -> Result<PolicyPut, StoreError> {
        let (name, written) = (name_of_quota(of), written_quota(quota));
        let limit = MAX_POLICIES + MAX_KEYS + MAX_QUOTAS;
        let mut tries = 0;
        loop {
            let stored = dispatch!(self.entry(&name))?;
            let entry = BookEntry { name: &name, written: &written, metrics: Metrics::Together, limit };
            let put = dispatch!(self.put_entry(entry, stored.as_deref()))?;
            tries += 1;
            if put != PolicyPut::Outdated || tries == MAX_TRIES {
                return Ok(put);
            }
        }
    }

    /// Deletes a quota; `None` if there is none.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn delete_quota(&self, of: &QuotaOf) -> Result<Option<PolicyVersion>, StoreError> {
        dispatch!(self.delete_entry(&name_of_quota(of)))
    }

    /// All quotas.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn quotas(&self) -> Result<Quotas, StoreError> {
        let entries = self.read_entries(None).await?;
        Ok(entries.map(|(_, entries)| entries.quotas).unwrap_or_default())
    }

    /// All entries of the book.
    async fn read_entries(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, Entries)>, StoreError> {
        Ok(dispatch!(self.policies(known))?.map(|(version, rows)| (version, sorted(rows))))
    }
}

fn parse_stored(written: &str) -> Result<Policy, StoreError> {
    parse_policy(written.as_bytes()).map_err(|_| StoreError::Unreadable("a policy"))
}

/// What the entries of the book are.
#[derive(Debug, Default)]
struct Entries {
    policies: Policies,
    /// The topics whose policy cannot be read, so that it does not affect other topics.
    unreadable: HashSet<Topic>,
    keys: AccessKeys,
    quotas: Quotas,
}

/// What the name of a key's entry begins with. No topic has it.
const KEY: char = '!';
/// What the name of a quota's entry begins with. No id of a key has it.
const QUOTA: &str = "!quota ";

fn name_of_quota(of: &QuotaOf) -> String {
    format!("{QUOTA}{of}")
}

fn name_of_key(id: &KeyId) -> String {
    format!("{KEY}{id}")
}

fn sorted(rows: PolicyRows) -> Entries {
    let mut entries = Entries { policies: Policies::with_capacity(rows.len()), ..Entries::default() };
    for (name, written) in rows {
        if let Some(of) = name.strip_prefix(QUOTA) {
            entries.add_quota(of, &written);
        } else if let Some(id) = name.strip_prefix(KEY) {
            entries.add_key(id, &written);
        } else {
            entries.add_policy(&name, &written);
        }
    }
    entries
}

impl Entries {
    fn add_key(&mut self, id: &str, written: &str) {
        match id.parse().ok().and_then(|id: KeyId| parse_stored_key(id, written)) {
            Some(key) => drop(self.keys.insert(key.hash, Arc::new(key))),
            None => tracing::error!(
                key = id,
                "the key of a caller cannot be read, so nobody can use it; delete it, or use the version that wrote it"
            ),
        }
    }

    fn add_quota(&mut self, of: &str, written: &str) {
        match of.parse().ok().zip(parse_stored_quota(written)) {
            Some((of, quota)) => drop(self.quotas.insert(of, quota)),
            None => tracing::error!(
                tenant = of,
                "a quota cannot be read, so it limits nobody; set it again, or use the version that wrote it"
            ),
        }
    }

    fn add_policy(&mut self, name: &str, written: &str) {
        let topic = Topic::from_stored(name);
        match (topic, parse_policy(written.as_bytes())) {
            (Some(topic), Ok(policy)) => drop(self.policies.insert(topic, Arc::new(policy))),
            (topic, _) => {
                tracing::error!(
                    topic = name,
                    "the policy of a topic cannot be read, so its callbacks wait; use the version that wrote it, or put another one with \"secrets\":[], which has none"
                );
                self.unreadable.extend(topic);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_cannot_be_read_is_none_of_the_others_and_known_as_such() {
        let row = |topic: &str, written: &str| (topic.to_owned(), written.to_owned());
        let rows = [
            row("a", "{}"),
            row("b", r#"{"unknown":1}"#),
            row("no topic", "{}"),
            row("c", "{"),
            row("!key_1", "{}"),
            row("!quota acme", r#"{"jobs":5}"#),
            row("!quota *", r#"{"later":5}"#),
            row("~acme/a", "{}"),
        ];
        let Entries { policies, unreadable, keys, quotas } = sorted(rows.into());
        let topic = |name: &str| name.parse::<Topic>().unwrap();
        let of_tenant = Topic::from_stored("~acme/a").unwrap();
        assert_eq!(policies.into_keys().collect::<HashSet<_>>(), HashSet::from([topic("a"), of_tenant]));
        assert!(keys.is_empty());
        let quota = Quota { jobs: Some(5), ..Quota::default() };
        assert_eq!(quotas, Quotas::from([(QuotaOf::Tenant("acme".parse().unwrap()), quota)]));
        assert_eq!(unreadable, HashSet::from([topic("b"), topic("c")]));
        let known = Known::new(PolicyVersion(1), Entries { unreadable, ..Entries::default() });
        let book = PolicyBook(Arc::new(watch::Sender::new(Some(known))));
        assert!(book.is_unreadable(&topic("b")) && !book.is_unreadable(&topic("a")));
    }

    #[test]
    fn the_book_knows_whether_any_topic_says_which_attempts_are_logged() {
        assert!(!PolicyBook::default().is_any_logging());
        for (written, is_any) in [(r#"{"timeout":"5s"}"#, false), (r#"{"attempts":"off"}"#, true)] {
            let policy = parse_policy(written.as_bytes()).unwrap();
            let book = PolicyBook::of(Policies::from([("t".parse().unwrap(), policy.into())]));
            assert_eq!(book.is_any_logging(), is_any, "{written}");
        }
    }
}
