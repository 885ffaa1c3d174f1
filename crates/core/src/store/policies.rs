//! The policies of topics: kept by the store, and known as a whole to each process. Whoever
//! works by them keeps a [`PolicyBook`], which is told of changes, and looks every few seconds
//! in case it was not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rand::Rng;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::{Backend, Store, StoreError, Tries, Word, embedded, redis};
use crate::job::Topic;
use crate::policy::{Policies, Policy};
use crate::retry::RetryPolicy;
use crate::wire::parse_policy;

/// How often the version of the policies is looked at.
const FLOOR: Duration = Duration::from_secs(5);
/// Between two readings there is at least this, and longer where they take long, so that many
/// changes are read at once.
const PAUSE: Duration = Duration::from_millis(5);
/// And at most this.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// When to try again to read them for the first time.
const EAGER: Duration = Duration::from_millis(25);
/// When to try again later on.
const AGAIN: Duration = Duration::from_secs(1);

/// Which state of the policies was read. Each change has a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyVersion(pub(super) u64);

/// What became of a policy that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyPut {
    /// The topic had none.
    Created(PolicyVersion),
    /// It is in the place of another.
    Replaced(PolicyVersion),
    /// There are as many as there may be; nothing changed.
    TooMany,
}

impl Store {
    /// Gives a topic a policy. Those who keep a [`PolicyBook`] are told.
    ///
    /// # Errors
    /// Any [`StoreError`]; putting it again does no harm.
    pub async fn put_policy(&self, topic: &Topic, policy: &Policy) -> Result<PolicyPut, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.put_policy(topic, policy.written()).await,
            Backend::Embedded(store) => store.put_policy(topic, policy.written()).await,
        }
    }

    /// The policy of a topic.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn policy(&self, topic: &Topic) -> Result<Option<Policy>, StoreError> {
        let written = match &self.backend {
            Backend::Redis(store) => store.policy(topic).await?,
            Backend::Embedded(store) => store.policy(topic).await?,
        };
        let read =
            |text: String| parse_policy(text.as_bytes()).map_err(|_| StoreError::Unreadable("a policy"));
        written.map(read).transpose()
    }

    /// Forgets the policy of a topic; `None` where it had none.
    ///
    /// # Errors
    /// Any [`StoreError`]; doing it again does no harm.
    pub async fn delete_policy(&self, topic: &Topic) -> Result<Option<PolicyVersion>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.delete_policy(topic).await,
            Backend::Embedded(store) => store.delete_policy(topic).await,
        }
    }

    /// All policies, and of which version they are at least; `None` where that is the one that
    /// is `known`. One small read then.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn policies(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, Policies)>, StoreError> {
        let read = match &self.backend {
            Backend::Redis(store) => store.policies(known).await?,
            Backend::Embedded(store) => store.policies(known).await?,
        };
        Ok(read.map(|(version, rows)| (version, rows.into_iter().filter_map(row).collect())))
    }

    /// A new stream of the word that policies have changed; `rng` spreads its attempts to
    /// subscribe again.
    pub fn policy_changes(&self, rng: StdRng) -> PolicyChanges {
        PolicyChanges(match &self.backend {
            Backend::Redis(store) => Source::Redis(Box::new(store.policy_changes(rng))),
            Backend::Embedded(store) => Source::Embedded(store.policy_changes()),
        })
    }
}

/// One that cannot be read stops no other topic's.
fn row((topic, written): (String, String)) -> Option<(Topic, Arc<Policy>)> {
    match (topic.parse(), parse_policy(written.as_bytes())) {
        (Ok(topic), Ok(policy)) => Some((topic, Arc::new(policy))),
        _ => {
            tracing::error!(topic, "the policy of a topic cannot be read and does not count");
            None
        }
    }
}

/// The stream of changes. It reconnects by itself and never ends. Words may be lost.
pub struct PolicyChanges(Source);

enum Source {
    Redis(Box<redis::PolicyChanges>),
    Embedded(embedded::PolicyChanges),
}

impl PolicyChanges {
    /// Waits until policies may have changed: at first at once, and after each lost
    /// connection. Safe to drop and call again.
    pub async fn next(&mut self) {
        match &mut self.0 {
            Source::Redis(changes) => changes.next().await,
            Source::Embedded(changes) => changes.next().await,
        }
    }
}

/// All policies as this process knows them. Cheap to clone; all clones know the same.
#[derive(Clone, Debug)]
pub struct PolicyBook(Arc<watch::Sender<Option<Known>>>);

#[derive(Clone, Debug)]
struct Known {
    version: PolicyVersion,
    policies: Arc<Policies>,
    /// Whether any of them says which attempts are logged.
    is_any_logging: bool,
}

impl Known {
    fn new(version: PolicyVersion, policies: Policies) -> Self {
        let is_any_logging = policies.values().any(|policy| policy.attempts.is_some());
        Self { version, policies: Arc::new(policies), is_any_logging }
    }
}

impl Default for PolicyBook {
    /// Nothing is known yet.
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

/// The policies were never read, so that nobody can say what a topic's is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policies of the topics are not known yet")]
pub struct PoliciesUnknown;

impl PolicyBook {
    /// All of them.
    ///
    /// # Errors
    /// Before they were read once.
    pub fn all(&self) -> Result<Arc<Policies>, PoliciesUnknown> {
        self.0.borrow().as_ref().map(|known| Arc::clone(&known.policies)).ok_or(PoliciesUnknown)
    }

    /// The policy of a topic, as it is known now.
    ///
    /// # Errors
    /// Before they were read once.
    pub fn get(&self, topic: &Topic) -> Result<Option<Arc<Policy>>, PoliciesUnknown> {
        match &*self.0.borrow() {
            // Most installations have none.
            Some(known) if known.policies.is_empty() => Ok(None),
            Some(known) => Ok(known.policies.get(topic).cloned()),
            None => Err(PoliciesUnknown),
        }
    }

    /// Whether any topic's policy says which attempts are logged, as far as they are known.
    pub fn is_any_logging(&self) -> bool {
        self.0.borrow().as_ref().is_some_and(|known| known.is_any_logging)
    }

    /// Waits until they were read once.
    pub async fn known(&self) {
        // The sender is held here, so that it cannot close.
        self.0.subscribe().wait_for(Option::is_some).await.ok();
    }

    /// Waits until a change is known here.
    pub async fn reached(&self, version: PolicyVersion) {
        let reached = |known: &Option<Known>| known.as_ref().is_some_and(|known| known.version >= version);
        self.0.subscribe().wait_for(reached).await.ok();
    }

    /// Reads them when they have changed, for ever. `known` is told once they were read for the
    /// first time; `rng` is as of [`Store::policy_changes`].
    pub async fn keep(self, store: Store, rng: StdRng, known: impl FnOnce() + Send) {
        let (mut changes, mut version, mut known) = (store.policy_changes(rng), None, Some(known));
        let mut look_at = Instant::now();
        loop {
            tokio::select! {
                () = changes.next() => {}
                () = sleep_until(look_at) => {}
            }
            // One reading is for all that was told by now.
            while changes.next().now_or_never().is_some() {}
            let started = Instant::now();
            let wait = self.read(&store, &mut version).await;
            look_at = Instant::now() + wait;
            if version.is_some() {
                known.take().into_iter().for_each(|known| known());
                sleep((4 * started.elapsed()).clamp(PAUSE, LONGEST_PAUSE)).await;
            }
        }
    }

    /// After how long to look again.
    async fn read(&self, store: &Store, known: &mut Option<PolicyVersion>) -> Duration {
        match store.policies(*known).await {
            Ok(None) => FLOOR,
            Ok(Some((version, policies))) => {
                tracing::debug!(topics = policies.len(), "read the policies of the topics");
                *known = Some(version);
                self.0.send_replace(Some(Known::new(version, policies)));
                FLOOR
            }
            Err(error) => {
                tracing::debug!(%error, "the policies of the topics cannot be read; trying again");
                // Nothing can be done before they were read; after that those that are known count.
                if known.is_none() { EAGER } else { AGAIN }
            }
        }
    }
}

/// When jobs for pull are tried again.
#[derive(Clone, Debug)]
pub struct Retries {
    /// Of the topics.
    pub policies: PolicyBook,
    /// Of jobs that bring none and whose topic has none either.
    pub default: RetryPolicy,
}

impl Retries {
    /// The word on a job that has failed once more.
    ///
    /// # Errors
    /// While nobody can say what its topic's policy is.
    pub fn failed(
        &self,
        tries: &Tries,
        error: Option<String>,
        rng: &mut impl Rng,
    ) -> Result<Word, PoliciesUnknown> {
        let topic = tries.topic.as_ref().map_or(Ok(None), |topic| self.policies.get(topic))?;
        let of_topic = topic.as_ref().and_then(|policy| policy.retry.as_ref());
        Ok(Word::failed(tries, of_topic.unwrap_or(&self.default), error, rng))
    }
}

/// Rows as a backend has them: topic and policy.
pub(super) type Rows = HashMap<String, String>;

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    fn waits(seconds: u64) -> String {
        format!(r#"{{"retry":{{"delays":[{seconds}],"jitter":0}}}}"#)
    }

    fn policy(seconds: u64) -> Policy {
        parse_policy(waits(seconds).as_bytes()).unwrap()
    }

    #[test]
    fn a_failure_goes_by_the_job_then_by_its_topic_then_by_the_default() {
        let retries = Retries { policies: PolicyBook::default(), default: policy(3).retry.unwrap() };
        let mut rng = StdRng::seed_from_u64(1);
        let mut after = |retry, topic: Option<&str>| {
            let topic = topic.map(|topic| topic.parse().unwrap());
            match retries.failed(&Tries { failures: 0, retry, topic }, None, &mut rng) {
                Ok(Word::Retry { after, .. }) => Ok(after.as_secs()),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error),
            }
        };
        assert_eq!(after(None, Some("t")), Err(PoliciesUnknown));
        let policies = Policies::from([
            ("t".parse().unwrap(), policy(2).into()),
            ("u".parse().unwrap(), Arc::default()),
        ]);
        let known = Known::new(PolicyVersion(1), policies);
        retries.policies.0.send_replace(Some(known));
        assert_eq!(after(policy(1).retry, Some("t")), Ok(1));
        assert_eq!(after(None, Some("t")), Ok(2));
        assert_eq!(after(None, Some("u")), Ok(3), "a policy that does not say");
        assert_eq!((after(None, Some("none")), after(None, None)), (Ok(3), Ok(3)));
    }
    #[test]
    fn whether_any_topic_logs_in_its_own_way_is_known_with_the_policies() {
        let book = PolicyBook::default();
        assert!(!book.is_any_logging());
        for (written, is_any) in [(r#"{"timeout":"5s"}"#, false), (r#"{"attempts":"off"}"#, true)] {
            let policy = parse_policy(written.as_bytes()).unwrap();
            let policies = Policies::from([("t".parse().unwrap(), policy.into())]);
            book.0.send_replace(Some(Known::new(PolicyVersion(1), policies)));
            assert_eq!(book.is_any_logging(), is_any, "{written}");
        }
    }
}
