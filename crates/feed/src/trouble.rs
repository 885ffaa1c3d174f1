//! `Trouble`: which errors of a feed are logged: the first one, and each of another kind, until the feed goes on.

use std::mem::{Discriminant, discriminant};

use ringback_service::outage::Outage;

use crate::pass::PassError;

/// What keeps a feed from being loaded, as far as it was logged.
#[derive(Default)]
pub(crate) struct Trouble {
    pub(crate) outage: Outage,
    kind: Option<Discriminant<PassError>>,
}

impl Trouble {
    /// Notes an error. Returns whether it is to be logged: the first one, and each of another kind.
    pub(crate) fn is_new(&mut self, error: &PassError) -> bool {
        let (begins, kind) = (self.outage.begins(), discriminant(error));
        self.kind.replace(kind) != Some(kind) || begins
    }

    /// Notes that rows wait. Returns whether that is to be logged.
    pub(crate) fn begins_to_wait(&mut self) -> bool {
        self.kind = None;
        self.outage.begins()
    }

    pub(crate) fn ends(&mut self) -> bool {
        self.kind = None;
        self.outage.ends()
    }
}
