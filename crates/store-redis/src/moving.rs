//! Parts of the store that are refused because their slot moves from one node of a cluster to another, key by key. A
//! script would run on half of the keys, so the nodes refuse it ([`Keys::absent`]). They serve it again when the move is
//! over. Nothing is known of that but what calls were answered, and what the nodes say of their slots.

use std::sync::atomic::{AtomicBool, Ordering};

use ringback_core::store_types::StoreError;

use crate::keys::{KeySpace, Keys};

/// Which parts were refused when they were called or looked at last.
pub(crate) struct Moving(Box<[AtomicBool]>);

impl Moving {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self(keys.bases().iter().map(|_| AtomicBool::new(false)).collect())
    }

    /// Takes the end of a call.
    pub(crate) fn take<T>(&self, keys: &Keys, space: KeySpace, answer: &Result<T, StoreError>) {
        match answer {
            Ok(_) => self.set(keys, space, false),
            Err(StoreError::Moving(_)) => self.set(keys, space, true),
            Err(_) => {}
        }
    }

    pub(crate) fn set(&self, keys: &Keys, space: KeySpace, is_moving: bool) {
        let flag = &self.0[keys.index(space)];
        // Written only if it changes, because every call comes here.
        if flag.load(Ordering::Relaxed) == is_moving || flag.swap(is_moving, Ordering::Relaxed) == is_moving {
            return;
        }
        if is_moving {
            tracing::warn!(
                part = %space,
                slot = keys.slot(space),
                "a part of the store is refused while its slot moves to another node of the cluster"
            );
        } else {
            tracing::info!(part = %space, slot = keys.slot(space), "a part of the store is served again");
        }
    }

    pub(crate) fn is_set(&self, keys: &Keys, space: KeySpace) -> bool {
        self.0[keys.index(space)].load(Ordering::Relaxed)
    }
}
