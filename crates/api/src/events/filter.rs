//! Selects the events that a listener wants.

use ringback_core::contract::{Event, EventName};
use ringback_core::job::{JobId, Topic};

/// Which events a listener wants. An empty field matches every event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) topic: Option<Topic>,
    pub(crate) id: Option<JobId>,
    pub(crate) kinds: Vec<EventName>,
}

impl Filter {
    pub(super) fn matches(&self, event: &Event) -> bool {
        self.topic.as_ref().is_none_or(|topic| *topic == event.key.topic)
            && self.id.as_ref().is_none_or(|id| *id == event.key.id)
            && (self.kinds.is_empty() || self.kinds.contains(&event.kind.name()))
    }
}
