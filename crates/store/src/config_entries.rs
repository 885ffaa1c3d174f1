//! The entries of the shared configuration as stores keep them: their names, and parsing them into policies of topics,
//! keys of callers, quotas of tenants and credentials. What cannot be read affects nothing else.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ringback_core::access::{AccessKey, KeyId, Quota, QuotaOf};
use ringback_core::credential::{Credential, CredentialKey};
use ringback_core::job::Topic;
use ringback_core::store_types::PolicyRows;
use ringback_core::topic_policy::Policies;
use ringback_wire::parse_policy;

/// The keys of callers, by their hashes.
pub type AccessKeys = HashMap<[u8; 32], Arc<AccessKey>>;

/// The quotas of tenants.
pub type Quotas = BTreeMap<QuotaOf, Quota>;

/// The credentials that policies refer to.
pub type Credentials = BTreeMap<CredentialKey, Arc<Credential>>;

/// The parsed entries of the shared configuration.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) policies: Policies,
    /// The topics whose policy cannot be read, so that it does not affect other topics.
    pub(crate) unreadable: HashSet<Topic>,
    pub(crate) keys: AccessKeys,
    pub(crate) quotas: Quotas,
    pub(crate) credentials: Credentials,
}

/// What the name of a key's entry begins with. No topic has it.
const KEY: char = '!';
/// What the name of a quota's entry begins with. No id of a key has it.
const QUOTA: &str = "!quota ";

/// What the name of a credential's entry begins with. No id of a key has it.
const CREDENTIAL: &str = "!credential ";

pub(crate) fn name_of_credential(key: &CredentialKey) -> String {
    format!("{CREDENTIAL}{key}")
}

pub(crate) fn name_of_quota(of: &QuotaOf) -> String {
    format!("{QUOTA}{of}")
}

pub(crate) fn name_of_key(id: &KeyId) -> String {
    format!("{KEY}{id}")
}

/// Parses entries, each by the prefix of its name. Logs and leaves out those that cannot be read.
pub(crate) fn sorted(rows: PolicyRows) -> Entries {
    let mut entries = Entries { policies: Policies::with_capacity(rows.len()), ..Entries::default() };
    for (name, written) in rows {
        if let Some(of) = name.strip_prefix(QUOTA) {
            entries.add_quota(of, &written);
        } else if let Some(key) = name.strip_prefix(CREDENTIAL) {
            entries.add_credential(key, &written);
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
        match serde_json::from_str::<AccessKey>(written) {
            Ok(key) => drop(self.keys.insert(key.hash, Arc::new(key))),
            Err(_) => tracing::error!(
                key = id,
                "the key of a caller cannot be read, so nobody can use it; delete it, or use the version that wrote it"
            ),
        }
    }

    fn add_quota(&mut self, of: &str, written: &str) {
        match of.parse().ok().zip(serde_json::from_str(written).ok()) {
            Some((of, quota)) => drop(self.quotas.insert(of, quota)),
            None => tracing::error!(
                tenant = of,
                "a quota cannot be read, so it limits nobody; set it again, or use the version that wrote it"
            ),
        }
    }

    fn add_credential(&mut self, key: &str, written: &str) {
        match key.parse().ok().zip(serde_json::from_str(written).ok()) {
            Some((key, credential)) => drop(self.credentials.insert(key, Arc::new(credential))),
            None => tracing::error!(
                credential = key,
                "a credential cannot be read, so callbacks that carry it wait; put it again, or use the version that wrote it"
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
            row(
                "!credential ~acme/bank",
                r#"{"to":["https://b"],"kinds":["bearer"],"sealed":"k.a","created":0}"#,
            ),
            row("!credential bank", r#"{"to":[]}"#),
        ];
        let Entries { policies, unreadable, keys, quotas, credentials } = sorted(rows.into());
        assert_eq!(credentials.keys().map(ToString::to_string).collect::<Vec<_>>(), ["~acme/bank"]);
        let topic = |name: &str| name.parse::<Topic>().unwrap();
        let of_tenant = Topic::from_stored("~acme/a").unwrap();
        assert_eq!(policies.into_keys().collect::<HashSet<_>>(), HashSet::from([topic("a"), of_tenant]));
        assert!(keys.is_empty());
        let quota = Quota { jobs: Some(5), ..Quota::default() };
        assert_eq!(quotas, Quotas::from([(QuotaOf::Tenant("acme".parse().unwrap()), quota)]));
        assert_eq!(unreadable, HashSet::from([topic("b"), topic("c")]));
    }
}
