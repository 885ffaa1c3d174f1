//! `Pools`: one pool of connections for each tenant and TLS identity, so that no callback uses a connection that was
//! opened for another tenant or with another certificate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ringback_core::job::Tenant;
use tokio::time::Instant;

use super::connections::Connections;
use super::connector::Connector;
use super::error::PostError;
use super::tls::Tls;
use crate::credentials::Identity;

/// How many pools there may be beside the one of callbacks without a tenant and an identity. The one that was not used
/// for the longest time makes room.
const MAX_POOLS: usize = 1_024;

/// All connections that are kept.
pub(super) struct Pools {
    /// How many connections are kept at most, by origin.
    idle: usize,
    usual: RwLock<Usual>,
    others: Mutex<HashMap<PoolKey, Used>>,
}

/// What callbacks without a tenant and an identity use.
struct Usual {
    connector: Connector,
    pool: Connections,
}

impl Usual {
    fn new(connector: Connector, idle: usize) -> Self {
        let pool = Connections::new(connector.clone(), idle);
        Self { connector, pool }
    }
}

/// Whose connections they are, and what they use for TLS.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PoolKey {
    tenant: Option<Tenant>,
    identity: Option<u64>,
}

struct Used {
    pool: Connections,
    last: Instant,
}

impl Pools {
    /// Keeps at most `idle` idle connections per origin.
    pub(super) fn new(connector: Connector, idle: usize) -> Self {
        Self { idle, usual: RwLock::new(Usual::new(connector, idle)), others: Mutex::default() }
    }

    /// Replaces all pools, so that new connections use other certificate authorities. Attempts under way go on.
    pub(super) fn trust(&self, tls: Tls) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let mut usual = self.usual.write().unwrap_or_else(PoisonError::into_inner);
        *usual = Usual::new(usual.connector.with_tls(tls), self.idle);
        others.clear();
    }

    /// The pool of a tenant, or of none, with an identity, or with none. Makes it if there is none; beyond
    /// [`MAX_POOLS`] the one that was not used for the longest time is dropped.
    ///
    /// # Errors
    /// If the certificates of the identity cannot be used.
    pub(super) fn of(
        &self,
        tenant: Option<Tenant>,
        identity: Option<&Arc<Identity>>,
    ) -> Result<Connections, PostError> {
        if tenant.is_none() && identity.is_none() {
            return Ok(self.usual.read().unwrap_or_else(PoisonError::into_inner).pool.clone());
        }
        let key = PoolKey { tenant, identity: identity.map(|identity| identity.number) };
        let (mut others, now) = (self.others.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if let Some(used) = others.get_mut(&key) {
            used.last = now;
            return Ok(used.pool.clone());
        }
        let connector = self.usual.read().unwrap_or_else(PoisonError::into_inner).connector.clone();
        let connector = match identity {
            Some(identity) => connector.with_identity(identity)?,
            None => connector,
        };
        if others.len() >= MAX_POOLS {
            let oldest = others.iter().min_by_key(|(_, used)| used.last).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| others.remove(&oldest));
        }
        let pool = Connections::new(connector, self.idle);
        others.insert(key, Used { pool: pool.clone(), last: now });
        Ok(pool)
    }
}
