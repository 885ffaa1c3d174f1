//! What a topic says of its jobs where they do not say it themselves, and all such policies
//! together as one process knows them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::job::{Callback, Headers, Topic};
use crate::retry::RetryPolicy;
use crate::store::Logging;

/// The most bytes of a policy, as it was written.
pub const MAX_POLICY: usize = 16 * 1024;
/// The most policies of an installation.
pub const MAX_POLICIES: usize = 10_000;
/// The most bytes of an answer that is expected.
pub const MAX_EXPECTED: usize = 1024;

/// The policy of a topic. What it leaves out is as if there were none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// When failed jobs are tried again.
    pub retry: Option<RetryPolicy>,
    /// The deadline of one attempt.
    pub timeout: Option<Duration>,
    /// How long a consumer has a job for pull.
    pub ttr: Option<Duration>,
    /// Where jobs go that are submitted without a URL.
    pub url: Option<Callback>,
    /// Added to the headers of a job that has none of the same name.
    pub headers: Headers,
    /// What a receiver's answer has to be, but for white space around it.
    pub expect_body: Option<String>,
    /// Which attempts are logged.
    pub attempts: Option<Logging>,
    /// Where the deaths of jobs are told that do not say so themselves.
    pub on_dead: Option<Callback>,
    /// All of it as JSON, each field as it was written.
    pub(crate) written: Box<str>,
}

impl Policy {
    /// All of it as JSON, each field as it was written.
    pub fn written(&self) -> &str {
        if self.written.is_empty() { "{}" } else { &self.written }
    }
}

/// The policies of all topics that have one.
pub type Policies = HashMap<Topic, Arc<Policy>>;
