//! Policies of topics as the store keeps them: their version, and the result of a change.

use std::collections::HashMap;

/// The version of the stored policies. It grows with every change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyVersion(pub u64);

/// The result of putting a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyPut {
    /// The topic had no policy before.
    Created(PolicyVersion),
    /// It replaced the topic's policy.
    Replaced(PolicyVersion),
    /// There are [`MAX_POLICIES`](crate::policy::MAX_POLICIES) already. Nothing changed.
    TooMany,
}

/// All policies as a backend keeps them: topic and JSON.
pub type PolicyRows = HashMap<String, String>;
