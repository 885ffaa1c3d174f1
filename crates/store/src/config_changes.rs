//! Changing, reading and deleting the entries of the shared configuration: policies of topics, keys of callers, quotas
//! of tenants, credentials. Each change notifies every [`SharedConfig`](crate::SharedConfig).

use std::convert::Infallible;
use std::sync::Arc;

use ringback_core::access::{AccessKey, KeyId, MAX_KEYS, MAX_QUOTAS, Quota, QuotaOf};
use ringback_core::clock::Timestamp;
use ringback_core::credential::{Credential, CredentialKey, MAX_CREDENTIALS};
use ringback_core::flow::Limits;
use ringback_core::job::{TenantScope, Topic};
use ringback_core::store_types::{ConfigEntry, LimitTarget, PolicyPut, PolicyVersion, StoreError};
use ringback_core::topic_policy::{MAX_POLICIES, Metrics, Policies, Policy};
use ringback_wire::parse_policy;
use serde::Serialize;

use crate::backend::backend;
use crate::config_entries::{
    Credentials, Entries, Quotas, name_of_credential, name_of_key, name_of_quota, sorted,
};
use crate::store::Store;

/// How often a change of an entry is tried, if others change the stored entry meanwhile.
const MAX_TRIES: usize = 8;

impl Store {
    /// Puts the policy of a topic in place of any other; [`PolicyPut::Outdated`] if others change it in 8 tries in a
    /// row.
    pub async fn put_policy(&self, topic: &Topic, policy: &Policy) -> Result<PolicyPut, StoreError> {
        let make = |_: Option<&str>| Ok(Ok::<_, Infallible>(policy.clone()));
        let Ok((_, put)) = self.replace_policy(topic, make).await?;
        Ok(put)
    }

    /// Replaces the stored policy of a topic by the one that `make` makes of it. If the stored policy changes
    /// meanwhile, `make` is called again; after 8 tries the result is [`PolicyPut::Outdated`]. Returns the policy that
    /// was to be put and the result, or the error of `make`. Fails if the stored policy cannot be read.
    pub async fn change_policy<E>(
        &self,
        topic: &Topic,
        mut make: impl FnMut(Option<&Policy>) -> Result<Policy, E>,
    ) -> Result<Result<(Policy, PolicyPut), E>, StoreError> {
        let make = |stored: Option<&str>| Ok(make(stored.map(parse_stored).transpose()?.as_ref()));
        self.replace_policy(topic, make).await
    }

    /// [`Store::change_policy`], where `make` gets the stored text.
    async fn replace_policy<E>(
        &self,
        topic: &Topic,
        mut make: impl FnMut(Option<&str>) -> Result<Result<Policy, E>, StoreError>,
    ) -> Result<Result<(Policy, PolicyPut), E>, StoreError> {
        let mut was_ordered = false;
        let make = |stored: Option<&str>| {
            // A policy that cannot be read may have been one of an ordered topic.
            was_ordered |=
                stored.is_some_and(|text| parse_stored(text).map_or(true, |old| old.order.is_some()));
            make(stored)
        };
        let write = |policy: &Policy| Written {
            text: policy.written().to_owned(),
            metrics: policy.metrics,
            limits: (!policy.limits.is_empty()).then(|| (LimitTarget::Topic(topic.clone()), policy.limits)),
        };
        let replaced = self.replace_entry(topic.as_str(), MAX_POLICIES, make, write).await?;
        let is_limited = |(policy, put): &(Policy, PolicyPut)| {
            !policy.limits.is_empty() && matches!(put, PolicyPut::Created(_) | PolicyPut::Replaced(_))
        };
        if !replaced.as_ref().is_ok_and(is_limited) {
            self.follow_policy(topic).await?;
        }
        // The order begins once the policy is put: a failure before that changes nothing.
        if was_ordered || replaced.as_ref().is_ok_and(|(policy, _)| policy.order.is_some()) {
            self.follow_order(topic).await?;
        }
        Ok(replaced)
    }

    /// Replaces the text of an entry by what `write` makes of the result of `make`, up to [`MAX_TRIES`] times while
    /// others change it. Adds no entry if there are `limit` already. Its limits hold before it is put. Returns the result
    /// of `make` and that of the put.
    async fn replace_entry<T, E>(
        &self,
        name: &str,
        limit: usize,
        mut make: impl FnMut(Option<&str>) -> Result<Result<T, E>, StoreError>,
        write: impl Fn(&T) -> Written,
    ) -> Result<Result<(T, PolicyPut), E>, StoreError> {
        let mut tries = 0;
        loop {
            let stored = backend!(self.entry(name).await)?;
            let made = match make(stored.as_deref())? {
                Ok(made) => made,
                Err(error) => return Ok(Err(error)),
            };
            let Written { text, metrics, limits } = write(&made);
            if let Some((of, limits)) = limits
                && let Err(exceeded) = self.limit(&of, &limits).await?
            {
                return Ok(Ok((made, PolicyPut::TooManyLimits(exceeded))));
            }
            let entry = ConfigEntry { name, written: &text, metrics, limit };
            let put = backend!(self.put_entry(entry, stored.as_deref()).await)?;
            tries += 1;
            if put != PolicyPut::Outdated || tries == MAX_TRIES {
                return Ok(Ok((made, put)));
            }
        }
    }

    /// The policy of a topic; `None` if it has none. Fails if the policy cannot be read.
    pub async fn policy(&self, topic: &Topic) -> Result<Option<Policy>, StoreError> {
        backend!(self.entry(topic.as_str()).await)?.as_deref().map(parse_stored).transpose()
    }

    /// Deletes the policy of a topic, and its limits; `None` if it had none.
    pub async fn delete_policy(&self, topic: &Topic) -> Result<Option<PolicyVersion>, StoreError> {
        let deleted = backend!(self.delete_entry(topic.as_str()).await)?;
        self.follow_policy(topic).await?;
        if deleted.is_some() {
            self.follow_order(topic).await?;
        }
        Ok(deleted)
    }

    /// All policies that can be read, and a version that they have at least; `None` if the version is still `known`,
    /// which takes only one small read.
    pub async fn policies(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, Policies)>, StoreError> {
        Ok(self.read_entries(known).await?.map(|(version, entries)| (version, entries.policies)))
    }

    /// All policies of a scope, for a copy that must be complete: fails if one of them cannot be read.
    pub async fn all_policies(&self, scope: &TenantScope) -> Result<Policies, StoreError> {
        let Entries { policies, unreadable, .. } = self.entries().await?;
        if unreadable.iter().any(|topic| scope.has(topic)) {
            return Err(StoreError::Unreadable("the policy of a topic"));
        }
        Ok(policies.into_iter().filter(|(topic, _)| scope.has(topic)).collect())
    }

    /// Adds a key. The result is [`PolicyPut::Outdated`] if there is one with its id.
    pub async fn add_key(&self, key: &AccessKey) -> Result<PolicyPut, StoreError> {
        self.put_key(key, None).await
    }

    /// Records when a key was used. Changes nothing if the key was changed or deleted since it was read.
    pub async fn note_key_use(&self, key: &AccessKey, at: Timestamp) -> Result<(), StoreError> {
        let used = AccessKey { last_used: Some(at), ..key.clone() };
        self.put_key(&used, Some(&written(key))).await.map(drop)
    }

    async fn put_key(&self, key: &AccessKey, replaced: Option<&str>) -> Result<PolicyPut, StoreError> {
        let (name, written) = (name_of_key(&key.id), written(key));
        let limit = MAX_POLICIES + MAX_KEYS;
        let entry = ConfigEntry { name: &name, written: &written, metrics: Metrics::Together, limit };
        backend!(self.put_entry(entry, replaced).await)
    }

    /// Deletes a key; `None` if there is none with this id.
    pub async fn delete_key(&self, id: &KeyId) -> Result<Option<PolicyVersion>, StoreError> {
        backend!(self.delete_entry(&name_of_key(id)).await)
    }

    /// All keys that can be read, in no particular order.
    pub async fn access_keys(&self) -> Result<Vec<Arc<AccessKey>>, StoreError> {
        Ok(self.entries().await?.keys.into_values().collect())
    }

    /// Sets a quota in place of any other. [`PolicyPut::Outdated`] if others change it in all of 8 tries.
    pub async fn put_quota(&self, of: &QuotaOf, quota: Quota) -> Result<PolicyPut, StoreError> {
        let limit = MAX_POLICIES + MAX_KEYS + MAX_QUOTAS;
        let make = |_: Option<&str>| Ok(Ok::<_, Infallible>(quota));
        let write = |quota: &Quota| Written::of(quota);
        let Ok((_, put)) = self.replace_entry(&name_of_quota(of), limit, make, write).await?;
        Ok(put)
    }

    /// Deletes a quota; `None` if there is none.
    pub async fn delete_quota(&self, of: &QuotaOf) -> Result<Option<PolicyVersion>, StoreError> {
        backend!(self.delete_entry(&name_of_quota(of)).await)
    }

    /// All quotas that can be read.
    pub async fn quotas(&self) -> Result<Quotas, StoreError> {
        Ok(self.entries().await?.quotas)
    }

    /// Replaces the stored credential by the one that `make` makes of it; one that cannot be read counts as none. If it
    /// changes meanwhile, `make` is called again; after 8 tries the result is [`PolicyPut::Outdated`]. Returns the
    /// credential that was to be put and the result, or the error of `make`.
    pub async fn change_credential<E>(
        &self,
        key: &CredentialKey,
        make: impl Fn(Option<Credential>) -> Result<Credential, E>,
    ) -> Result<Result<(Credential, PolicyPut), E>, StoreError> {
        let limit = MAX_POLICIES + MAX_KEYS + MAX_QUOTAS + MAX_CREDENTIALS;
        let make = |stored: Option<&str>| Ok(make(stored.and_then(|text| serde_json::from_str(text).ok())));
        let write = |credential: &Credential| Written::of(credential);
        self.replace_entry(&name_of_credential(key), limit, make, write).await
    }

    /// A credential; `None` if there is none or it cannot be read.
    pub async fn credential(&self, key: &CredentialKey) -> Result<Option<Credential>, StoreError> {
        let stored = backend!(self.entry(&name_of_credential(key)).await)?;
        Ok(stored.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Deletes a credential; `None` if there is none.
    pub async fn delete_credential(&self, key: &CredentialKey) -> Result<Option<PolicyVersion>, StoreError> {
        backend!(self.delete_entry(&name_of_credential(key)).await)
    }

    /// All credentials that can be read.
    pub async fn credentials(&self) -> Result<Credentials, StoreError> {
        Ok(self.entries().await?.credentials)
    }

    async fn entries(&self) -> Result<Entries, StoreError> {
        Ok(self.read_entries(None).await?.map(|(_, entries)| entries).unwrap_or_default())
    }

    /// All entries of the shared configuration with their version; `None` if that is still `known`.
    pub(crate) async fn read_entries(
        &self,
        known: Option<PolicyVersion>,
    ) -> Result<Option<(PolicyVersion, Entries)>, StoreError> {
        Ok(backend!(self.policies(known).await)?.map(|(version, rows)| (version, sorted(rows))))
    }
}

/// An entry as it is stored, and the limits that belong to it.
struct Written {
    text: String,
    metrics: Metrics,
    limits: Option<(LimitTarget, Limits)>,
}

impl Written {
    /// A quota or a credential, which has no limits.
    fn of(entry: &impl Serialize) -> Self {
        Self { text: written(entry), metrics: Metrics::Together, limits: None }
    }
}

/// The JSON of a key, a quota or a credential.
fn written(entry: &impl Serialize) -> String {
    serde_json::to_string(entry).expect("plain data always serialises")
}

fn parse_stored(written: &str) -> Result<Policy, StoreError> {
    parse_policy(written.as_bytes()).map_err(|_| StoreError::Unreadable("a policy"))
}
