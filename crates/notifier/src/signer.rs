//! `Signer`: signs callbacks with the secrets of their topic and of the installation, and opens the secret headers of
//! policies. A callback whose secrets cannot be opened is not sent: its receiver could not tell it from a forged one.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue};
use ringback_core::clock::Timestamp;
use ringback_core::job::Topic;
use ringback_core::store_types::{Lease, is_notice_topic};
use ringback_core::topic_policy::{Policy, StoredSecret};
use ringback_secrets::{MasterKeys, SigningSecret, WebhookHeaders, sign};
use ringback_store::SharedConfig;
use ringback_wire::{opened_headers, topic_of_notice};
use tracing::warn;

use crate::config::Signing;

/// Signs callbacks, and knows the names of their headers.
pub(crate) struct Signer {
    keys: MasterKeys,
    config: SharedConfig,
    /// The secrets that sign callbacks of all topics.
    installation: Vec<SigningSecret>,
    names: WebhookHeaders,
    pub(crate) id: HeaderName,
    pub(crate) timestamp: HeaderName,
    pub(crate) signature: HeaderName,
}

/// A secret cannot be opened, or the policy that has it cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CannotOpen;

impl Signer {
    pub(crate) fn new(Signing { keys, secrets, headers }: Signing, config: SharedConfig) -> Self {
        let name = |text: &str| text.parse().expect("a prefix and a letter are a header name");
        let (id, timestamp, signature) =
            (name(&headers.id), name(&headers.timestamp), name(&headers.signature));
        Self { keys, config, installation: secrets, names: headers, id, timestamp, signature }
    }

    /// The value of the signature header of a callback; `None` if there is no secret. `policy` is that of the job's
    /// topic. A notice is signed with the secrets of the topic that it is about. A topic of a tenant has only its own
    /// secrets.
    ///
    /// # Errors
    /// If a secret cannot be opened, or the policy cannot be read, which is logged.
    pub(crate) fn sign(
        &self,
        lease: &Lease,
        policy: Option<&Policy>,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<HeaderValue>, CannotOpen> {
        let topic = &lease.key.topic;
        if is_notice_topic(topic) {
            // A notice is signed as the callbacks of the job that has ended.
            let topic = topic_of_notice(topic, &lease.delivery.body.bytes).unwrap_or_else(|| topic.clone());
            let policy = self.config.get(&topic).ok().flatten();
            return self.sign_as(&topic, policy.as_deref(), lease, id, now);
        }
        self.sign_as(topic, policy, lease, id, now)
    }

    fn sign_as(
        &self,
        topic: &Topic,
        policy: Option<&Policy>,
        lease: &Lease,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<HeaderValue>, CannotOpen> {
        if policy.is_none() && self.config.is_unreadable(topic) {
            warn!(job.topic = topic.as_str(), "the policy of a topic cannot be read, so its callbacks wait");
            return Err(CannotOpen);
        }
        let stored = policy.into_iter().flat_map(|policy| policy.signing_secrets(now));
        let own = stored.map(|secret| self.open(topic, secret)).collect::<Result<Vec<_>, _>>()?;
        let seconds = i64::try_from(now.as_millis() / 1000).unwrap_or(i64::MAX);
        // Receivers of one tenant must not be able to sign for those of another.
        let config = if topic.tenant().is_none() { &self.installation[..] } else { &[] };
        let signatures = sign(own.iter().chain(config), id, seconds, &lease.delivery.body.bytes);
        Ok(signatures.map(|text| HeaderValue::from_str(&text).expect("base64 is visible ASCII")))
    }

    fn open(
        &self,
        topic: &Topic,
        StoredSecret { id, sealed, .. }: &StoredSecret,
    ) -> Result<SigningSecret, CannotOpen> {
        let opened = self.keys.open(&StoredSecret::name(topic, id), sealed);
        let text = opened.map_err(|error| {
            warn!(job.topic = topic.as_str(), secret = %id, %error, "a secret of a topic cannot be opened, so its callbacks wait");
            CannotOpen
        })?;
        let secret = std::str::from_utf8(&text).ok().and_then(SigningSecret::parse);
        secret.ok_or_else(|| {
            warn!(job.topic = topic.as_str(), secret = %id, "a secret of a topic is not one that signs, so its callbacks wait");
            CannotOpen
        })
    }

    /// The headers that a policy adds to a callback to this origin, with secret values in the clear.
    ///
    /// # Errors
    /// If the secret values cannot be opened, which is logged.
    pub(crate) fn headers<'a>(
        &self,
        topic: &Topic,
        policy: &'a Policy,
        origin: &str,
    ) -> Result<Cow<'a, [(String, String)]>, CannotOpen> {
        let headers = policy.headers_for(origin);
        let Some(sealed) = policy.sealed_headers.as_ref().filter(|_| !headers.is_empty()) else {
            return Ok(headers.into());
        };
        let opened = self.keys.open(&policy.sealed_name(topic), sealed).map_err(|error| error.to_string());
        let opened = opened.and_then(|values| {
            let opened = opened_headers(policy, &values);
            opened.ok_or_else(|| "they are not the values of the headers that are masked".to_owned())
        });
        match opened {
            Ok(opened) => Ok(opened.into()),
            Err(error) => {
                warn!(job.topic = topic.as_str(), %error, "the secret headers of a topic cannot be opened, so its callbacks wait");
                Err(CannotOpen)
            }
        }
    }

    /// Whether this is the name of a webhook header, which a job or a policy must not replace. The API refuses those
    /// with the default prefix.
    pub(crate) fn owns(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}
