//! Re-encrypts ("reseals") the secrets of topics, the secret header values of policies, and credentials with the newest
//! master key, while the process runs. So an older key can be removed once nothing is sealed with it. Header values
//! that were stored before there was a key are sealed too.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rand::rngs::StdRng;
use ringback_core::credential::{Credential, CredentialKey};
use ringback_core::job::Topic;
use ringback_core::store_types::{PolicyPut, StoreError};
use ringback_core::topic_policy::{Policy, StoredSecret};
use ringback_secrets::{MasterKeys, OpenError};
use ringback_store::{SharedConfig, Store};
use ringback_wire::{secret_header_values, with_opened_headers, with_sealed_headers, with_secrets};
use tokio::time::sleep;
use tracing::{debug, info, warn};

/// How often all policies are looked at.
const EVERY: Duration = Duration::from_secs(60);
/// The longest time between two looks, while another process seals with another key.
const RARELY: Duration = Duration::from_secs(3600);
/// The pause after each topic: every process reads the policies again after each change.
const PAUSE: Duration = Duration::from_millis(20);

/// Keeps all secrets of topics, header values and credentials sealed with the newest key: reads them every minute, or
/// up to every hour while another process seals them with another key. Logs failures. Never returns.
pub(crate) async fn keep(store: Store, policies: SharedConfig, keys: MasterKeys, mut rng: StdRng) {
    let (mut done, mut done_credentials, mut pause) = (HashSet::new(), HashSet::new(), EVERY);
    loop {
        policies.known().await;
        let all = policies.all().unwrap_or_default();
        let (mut topics, mut again, mut unopened) = (0, 0, None);
        for (topic, policy) in all.iter().filter(|(_, policy)| is_outdated(policy, &keys)) {
            match reseal(&store, topic, policy, &keys, &mut rng).await {
                Ok(Resealed::Yes) => {
                    topics += 1;
                    again += usize::from(!done.insert(topic.clone()));
                }
                Ok(Resealed::No) => {}
                Ok(Resealed::Unopened(error)) => unopened = Some((topic, error)),
                Err(error) => debug!(job.topic = topic.as_str(), %error, "secrets are not sealed again yet"),
            }
            sleep(PAUSE).await;
        }
        let credentials = policies.credentials().unwrap_or_default();
        for (name, credential) in credentials.iter().filter(|(_, one)| keys.is_outdated(&one.sealed)) {
            match reseal_credential(&store, name, credential, &keys, &mut rng).await {
                Ok(resealed) => again += usize::from(resealed && !done_credentials.insert(name.clone())),
                Err(error) => debug!(credential = %name, %error, "a credential is not sealed again yet"),
            }
            sleep(PAUSE).await;
        }
        let key = keys.current().unwrap_or_default();
        if topics > 0 {
            info!(topics, master_key = key, "secrets of topics are sealed with the newest master key now");
        }
        if let Some((topic, error)) = unopened {
            warn!(job.topic = topic.as_str(), %error, "a secret cannot be sealed again with the newest master key");
        }
        pause = if again == 0 { EVERY } else { (2 * pause).min(RARELY) };
        if again > 0 {
            warn!(
                topics = again,
                master_key = key,
                "another process has sealed secrets with another master key again; name the same key first everywhere (RINGBACK_MASTER_KEYS)"
            );
        }
        sleep(pause).await;
    }
}

fn is_outdated(policy: &Policy, keys: &MasterKeys) -> bool {
    policy.secrets.iter().any(|secret| keys.is_outdated(&secret.sealed)) || are_headers_outdated(policy, keys)
}

/// Whether secret header values are sealed with an older key, or not at all because there was none.
fn are_headers_outdated(policy: &Policy, keys: &MasterKeys) -> bool {
    let is_sealed_before = policy.sealed_headers.as_ref().is_some_and(|sealed| keys.is_outdated(sealed));
    is_sealed_before || keys.current().is_some() && secret_header_values(policy).is_some()
}

/// A policy with its secret header values sealed with the newest key. `None` if they are so already, or if the headers
/// would be too long with masks.
fn with_resealed_headers(
    topic: &Topic,
    policy: &Policy,
    keys: &MasterKeys,
    rng: &mut StdRng,
) -> Result<Option<Policy>, OpenError> {
    if !are_headers_outdated(policy, keys) {
        return Ok(None);
    }
    let name = policy.sealed_name(topic);
    let opened = match &policy.sealed_headers {
        Some(sealed) => {
            with_opened_headers(policy, &keys.open(&name, sealed)?).ok_or(OpenError::Malformed)?
        }
        None => policy.clone(),
    };
    let sealed = secret_header_values(&opened).and_then(|values| keys.seal(&name, values.as_bytes(), rng));
    // Headers that are too long with masks stay as they are.
    Ok(sealed.and_then(|sealed| with_sealed_headers(&opened, &sealed).ok()))
}

/// What became of the secrets of a topic.
enum Resealed {
    Yes,
    /// Nothing is left to do, because another process has done it or they were changed, which the next look finds.
    No,
    /// None of them can be opened.
    Unopened(OpenError),
}

/// Seals the secrets and the header values of a topic again. Secrets that were removed meanwhile, and header values of
/// a policy that was changed meanwhile, are left for the next round, as is what cannot be opened.
async fn reseal(
    store: &Store,
    topic: &Topic,
    policy: &Policy,
    keys: &MasterKeys,
    rng: &mut StdRng,
) -> Result<Resealed, StoreError> {
    let (mut resealed, mut unopened) = (HashMap::<_, Box<str>>::new(), None);
    for StoredSecret { id, sealed, .. } in policy.secrets.iter().filter(|one| keys.is_outdated(&one.sealed)) {
        let name = StoredSecret::name(topic, id);
        match keys.open(&name, sealed) {
            Ok(opened) => {
                resealed.extend(keys.seal(&name, &opened, rng).map(|new| (sealed.clone(), new.into())));
            }
            Err(error) => unopened = Some(error),
        }
    }
    let with_headers = with_resealed_headers(topic, policy, keys, rng).unwrap_or_else(|error| {
        unopened = Some(error);
        None
    });
    if let (true, None, Some(error)) = (resealed.is_empty(), &with_headers, unopened) {
        return Ok(Resealed::Unopened(error));
    }
    let change = |stored: Option<&Policy>| {
        let stored = stored.ok_or(())?;
        let has_any = stored.secrets.iter().any(|one| resealed.contains_key(&one.sealed));
        let with_headers = with_headers.as_ref().filter(|_| stored == policy);
        if !has_any && with_headers.is_none() {
            return Err(());
        }
        let with = |secret: &StoredSecret| StoredSecret {
            sealed: resealed.get(&secret.sealed).unwrap_or(&secret.sealed).clone(),
            ..secret.clone()
        };
        let secrets: Vec<_> = stored.secrets.iter().map(with).collect();
        Ok::<_, ()>(with_secrets(with_headers.unwrap_or(stored), &secrets))
    };
    Ok(match store.change_policy(topic, change).await? {
        Ok((_, PolicyPut::Created(_) | PolicyPut::Replaced(_))) => Resealed::Yes,
        Ok(_) | Err(()) => Resealed::No,
    })
}

/// Seals a credential again and returns true; false if it was changed meanwhile or, with a warning in the log, if it
/// cannot be opened.
async fn reseal_credential(
    store: &Store,
    key: &CredentialKey,
    credential: &Credential,
    keys: &MasterKeys,
    rng: &mut StdRng,
) -> Result<bool, StoreError> {
    let name = Credential::sealed_name(key, &credential.to);
    let Some(sealed) =
        keys.open(&name, &credential.sealed).ok().and_then(|open| keys.seal(&name, &open, rng))
    else {
        warn!(credential = %key, "a credential cannot be sealed again with the newest master key");
        return Ok(false);
    };
    let change = |stored: Option<Credential>| {
        let stored = stored.filter(|stored| stored.sealed == credential.sealed).ok_or(())?;
        Ok::<_, ()>(Credential { sealed: sealed.as_str().into(), ..stored })
    };
    let changed = store.change_credential(key, change).await?;
    Ok(matches!(changed, Ok((_, PolicyPut::Created(_) | PolicyPut::Replaced(_)))))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use ringback_core::clock::Timestamp;
    use ringback_core::topic_policy::SecretId;

    use super::*;
    use crate::state::tests::prepared;

    fn keys(ids: &[&str]) -> MasterKeys {
        // The same id always has the same key.
        let key = |id: &&str| {
            MasterKeys::generate(id, &mut StdRng::seed_from_u64(u64::from(id.as_bytes()[0]))).to_string()
        };
        ids.iter().map(key).collect::<Vec<_>>().join(" ").parse().unwrap()
    }

    fn sealed(topic: &Topic, id: &str, keys: &MasterKeys) -> StoredSecret {
        let id = SecretId::of(id);
        let sealed = keys.seal(&StoredSecret::name(topic, &id), b"secret", &mut StdRng::seed_from_u64(9));
        StoredSecret { sealed: sealed.unwrap().into(), id, created: Timestamp::from_millis(1), until: None }
    }

    #[tokio::test]
    async fn what_can_be_opened_is_sealed_again_and_nothing_else_is_changed() {
        let (api, topic) = (prepared().await, "t".parse::<Topic>().unwrap());
        let new = keys(&["b", "a"]);
        // Sealed with another key of the same id.
        let foreign = MasterKeys::generate("a", &mut StdRng::seed_from_u64(5)).parse().unwrap();
        for (secrets, is_resealed, ids) in [
            (vec![sealed(&topic, "1", &foreign)], false, vec!["a"]),
            (vec![sealed(&topic, "1", &keys(&["a"])), sealed(&topic, "2", &foreign)], true, vec!["b", "a"]),
            (vec![sealed(&topic, "1", &keys(&["a"]))], true, vec!["b"]),
        ] {
            let policy = with_secrets(&Policy::default(), &secrets);
            api.store.put_policy(&topic, &policy).await.unwrap();
            let (before, _) = api.store.policies(None).await.unwrap().unwrap();
            let result =
                reseal(&api.store, &topic, &policy, &new, &mut StdRng::seed_from_u64(1)).await.unwrap();
            assert_eq!(matches!(result, Resealed::Yes), is_resealed);
            assert_eq!(matches!(result, Resealed::Unopened(_)), !is_resealed);
            assert_eq!(api.store.policies(Some(before)).await.unwrap().is_some(), is_resealed);
            let stored = api.store.policy(&topic).await.unwrap().unwrap();
            let by: Vec<_> = stored.secrets.iter().map(|one| one.sealed.split('.').next().unwrap()).collect();
            assert_eq!(by, ids);
            // What another process has sealed meanwhile stays.
            let again =
                reseal(&api.store, &topic, &policy, &new, &mut StdRng::seed_from_u64(1)).await.unwrap();
            assert_eq!(matches!(again, Resealed::No), is_resealed);
        }
    }
}
