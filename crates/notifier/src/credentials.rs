//! `Credentials`: finds and opens the credential that a callback carries to its receiver. Each is opened once, and
//! again when it has changed. A callback whose credential cannot be opened is not sent: its receiver would refuse it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use ringback_core::credential::{ClientCertificate, Contents, Credential, CredentialKey, MAX_CREDENTIALS};
use ringback_core::store_types::Lease;
use ringback_core::topic_policy::Policy;
use ringback_secrets::MasterKeys;
use ringback_store::SharedConfig;
use tracing::warn;

use crate::signer::CannotOpen;

/// The credentials of the shared configuration.
pub(crate) struct Credentials {
    keys: MasterKeys,
    config: SharedConfig,
    opened: Mutex<HashMap<CredentialKey, OpenCredential>>,
    /// The number of the next identity.
    next: AtomicU64,
}

struct OpenCredential {
    credential: Arc<Credential>,
    carried: Arc<Carried>,
}

/// What a callback carries.
pub(crate) struct Carried {
    pub(crate) authorization: Option<HeaderValue>,
    /// What its connection uses.
    pub(crate) identity: Option<Arc<Identity>>,
}

/// A client certificate, authorities, or both for TLS connections. Each identity has connections of its own.
pub(crate) struct Identity {
    /// No other identity of this process has it.
    pub(crate) number: u64,
    pub(crate) client: Option<ClientCertificate>,
    /// The certificate authorities, in the PEM form.
    pub(crate) ca: Option<String>,
}

impl Credentials {
    pub(crate) fn new(keys: MasterKeys, config: SharedConfig) -> Self {
        Self { keys, config, opened: Mutex::default(), next: AtomicU64::new(0) }
    }

    /// What the callback of a job carries by the policy of its topic; `None` if the policy names no credential, or the
    /// credential is not for the job's origin.
    ///
    /// # Errors
    /// If there is no such credential, or it cannot be opened, which is logged.
    pub(crate) fn carried(&self, lease: &Lease, policy: &Policy) -> Result<Option<Arc<Carried>>, CannotOpen> {
        let topic = &lease.key.topic;
        let Some(key) = policy.credential_of(topic) else { return Ok(None) };
        let opened = match self.config.credential(&key) {
            Some(credential) if !credential.is_for(lease.delivery.callback.origin()) => return Ok(None),
            Some(credential) => self.open(&key, &credential),
            None => Err("there is no such credential, or it cannot be read".to_owned()),
        };
        opened.map(Some).map_err(|error| {
            warn!(job.topic = topic.as_str(), credential = %key.name, error, "the credential of a topic cannot be opened, so its callbacks wait");
            CannotOpen
        })
    }

    fn open(&self, key: &CredentialKey, credential: &Arc<Credential>) -> Result<Arc<Carried>, String> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened.get(key)
            && (Arc::ptr_eq(&known.credential, credential) || known.credential.sealed == credential.sealed)
        {
            return Ok(Arc::clone(&known.carried));
        }
        let name = Credential::sealed_name(key, &credential.to);
        let contents = self.keys.open(&name, &credential.sealed).map_err(|error| error.to_string())?;
        let contents = Contents::parse(&contents).ok_or("it has other contents than a credential")?;
        let carried = Arc::new(self.carry(contents)?);
        if opened.len() >= MAX_CREDENTIALS {
            opened.retain(|key, _| self.config.credential(key).is_some());
        }
        let new = OpenCredential { credential: Arc::clone(credential), carried: Arc::clone(&carried) };
        opened.insert(key.clone(), new);
        Ok(carried)
    }

    fn carry(&self, contents: Contents) -> Result<Carried, String> {
        let Contents { bearer, basic, client, ca } = contents;
        let basic =
            basic.map(|basic| format!("Basic {}", STANDARD.encode([basic.user, basic.password].join(":"))));
        let authorization = bearer.map(|token| format!("Bearer {token}")).or(basic).map(|text| {
            let value = HeaderValue::from_str(&text).map(|mut value| {
                value.set_sensitive(true);
                value
            });
            value.map_err(|_| "it cannot be a header".to_owned())
        });
        let has_identity = client.is_some() || ca.is_some();
        let identity = has_identity.then(|| {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            Arc::new(Identity { number, client, ca })
        });
        Ok(Carried { authorization: authorization.transpose()?, identity })
    }
}
