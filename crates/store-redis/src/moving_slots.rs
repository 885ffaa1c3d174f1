//! Remembers which parts of the store are refused because their slot moves from one node of a cluster to another, key by
//! key. A script would run on half of the keys, so the nodes refuse it ([`Keys::absent`]) until the move is over. The
//! answers to calls, and `watch_moves`, tell of that.

use std::sync::atomic::{AtomicBool, Ordering};

use ringback_core::store_types::StoreError;

use crate::keys::{KeySpace, Keys};

/// For each part, whether it was refused when it was last called or checked.
pub(crate) struct Moving(Box<[AtomicBool]>);

impl Moving {
    pub(crate) fn new(keys: &Keys) -> Self {
        Self(keys.bases().iter().map(|_| AtomicBool::new(false)).collect())
    }

    /// Records the result of a call: an answer ends a move, `Moving` begins one, other errors say nothing.
    pub(crate) fn take<T>(&self, keys: &Keys, space: KeySpace, answer: &Result<T, StoreError>) {
        match answer {
            Ok(_) => self.set(keys, space, false),
            Err(StoreError::Moving(_)) => self.set(keys, space, true),
            Err(_) => {}
        }
    }

    pub(crate) fn set(&self, keys: &Keys, space: KeySpace, is_moving: bool) {
        let flag = &self.0[keys.index(space)];
        // The flag is written only if it changes, because every call comes here.
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
