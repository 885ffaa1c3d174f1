//! The two backends, Redis and embedded, and the macro that calls a method of either. Both have the methods of the
//! contract, by the same names, with the same arguments and results.

#[cfg(test)]
mod contract;

use std::sync::Arc;

use ringback_store_embedded::EmbeddedStore;
use ringback_store_redis::RedisStore;

#[derive(Clone)]
pub(crate) enum Backend {
    Redis(Arc<RedisStore>),
    Embedded(Arc<EmbeddedStore>),
}

/// Calls a method of the backend of a store.
macro_rules! backend {
    ($store:ident.$call:ident($($arg:expr),*).await) => {
        match &$store.backend {
            $crate::backend::Backend::Redis(store) => store.$call($($arg),*).await,
            $crate::backend::Backend::Embedded(store) => store.$call($($arg),*).await,
        }
    };
    ($store:ident.$fact:ident()) => {
        match &$store.backend {
            $crate::backend::Backend::Redis(store) => store.$fact(),
            $crate::backend::Backend::Embedded(store) => store.$fact(),
        }
    };
}

pub(crate) use backend;
