//! Seals the secrets of topics again with the newest master key, while the process runs. So a key can be removed once
//! nothing is sealed with it.

use std::collections::HashMap;
use std::time::Duration;

use rand::rngs::StdRng;
use ringback_core::contract::StoreError;
use ringback_core::job::Topic;
use ringback_core::policy::{Policy, StoredSecret};
use ringback_core::wire::with_secrets;
use ringback_secrets::MasterKeys;
use ringback_store::{PolicyBook, Store};
use tokio::time::sleep;
use tracing::{debug, info};

/// How often all policies are looked at.
const EVERY: Duration = Duration::from_secs(60);
/// The pause after each topic: every process reads the policies again after each change.
const PAUSE: Duration = Duration::from_millis(20);

/// Keeps the secrets of all topics sealed with the newest key, for ever.
pub(crate) async fn keep(store: Store, policies: PolicyBook, keys: MasterKeys, mut rng: StdRng) {
    loop {
        policies.known().await;
        let all = policies.all().unwrap_or_default();
        let mut topics = 0;
        for (topic, policy) in all.iter().filter(|(_, policy)| is_outdated(policy, &keys)) {
            match reseal(&store, topic, policy, &keys, &mut rng).await {
                Ok(()) => topics += 1,
                Err(error) => debug!(job.topic = %topic, %error, "secrets are not sealed again yet"),
            }
            sleep(PAUSE).await;
        }
        if topics > 0 {
            let key = keys.current().unwrap_or_default();
            info!(topics, master_key = key, "secrets of topics are sealed with the newest master key now");
        }
        sleep(EVERY).await;
    }
}

fn is_outdated(policy: &Policy, keys: &MasterKeys) -> bool {
    policy.secrets.iter().any(|secret| keys.is_outdated(&secret.sealed))
}

/// Seals the secrets of a topic again. Those that were changed meanwhile stay as they are until the next time.
async fn reseal(
    store: &Store,
    topic: &Topic,
    policy: &Policy,
    keys: &MasterKeys,
    rng: &mut StdRng,
) -> Result<(), StoreError> {
    let mut seal = |secret: &StoredSecret| {
        let name = StoredSecret::name(topic, &secret.id);
        let opened = keys.open(&name, &secret.sealed).ok()?;
        Some((secret.sealed.clone(), Box::from(keys.seal(&name, &opened, rng)?)))
    };
    let outdated = policy.secrets.iter().filter(|secret| keys.is_outdated(&secret.sealed));
    let resealed: HashMap<Box<str>, Box<str>> = outdated.filter_map(&mut seal).collect();
    let change = |stored: Option<&Policy>| {
        let stored = stored.filter(|stored| is_outdated(stored, keys)).ok_or(())?;
        let with = |secret: &StoredSecret| StoredSecret {
            sealed: resealed.get(&secret.sealed).unwrap_or(&secret.sealed).clone(),
            ..secret.clone()
        };
        Ok::<_, ()>(with_secrets(stored, &stored.secrets.iter().map(with).collect::<Vec<_>>()))
    };
    // If another process has done it, nothing is left to do.
    store.change_policy(topic, change).await.map(|_| ())
}
