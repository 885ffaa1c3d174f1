//! An object of strings, such as headers or a context, written in order.

use serde::{Serialize, Serializer};

/// Names and values.
#[derive(Clone, Debug)]
pub(crate) struct Entries(Box<[(String, String)]>);

impl Entries {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&[(String, String)]> for Entries {
    fn from(entries: &[(String, String)]) -> Self {
        Self(entries.into())
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
