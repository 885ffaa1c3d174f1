//! `Trouble`: decides which errors of a feed are logged: the first one, and each that is of another kind than the one
//! before, until the feed goes on. Also has the pauses between tries.

use std::mem::{Discriminant, discriminant};

use ringback_service::outage::Outage;

use crate::pass::PassError;

/// The trouble of a feed since it was last loaded.
#[derive(Default)]
pub(crate) struct Trouble {
    pub(crate) outage: Outage,
    kind: Option<Discriminant<PassError>>,
}

impl Trouble {
    /// Records an error. Returns whether to log it: it is the first one, or of another kind than the last.
    pub(crate) fn is_new(&mut self, error: &PassError) -> bool {
        let (begins, kind) = (self.outage.begins(), discriminant(error));
        self.kind.replace(kind) != Some(kind) || begins
    }

    /// Records that rows wait. Returns whether to log that: the trouble begins with it.
    pub(crate) fn begins_to_wait(&mut self) -> bool {
        self.kind = None;
        self.outage.begins()
    }

    pub(crate) fn ends(&mut self) -> bool {
        self.kind = None;
        self.outage.ends()
    }
}
