//! Answers with `include=request`, which show whole jobs: the memory that they reserve, because whole jobs can be large;
//! the settings that apply to a job; and an estimate of the size of a job in an answer.

use ringback_core::job::{Callback, Delivery, Topic};
use ringback_core::retry::RetryPolicy;
use ringback_core::topic_policy::Policies;
use ringback_wire::Inspection;

use crate::error::ApiError;
use crate::limits::MemoryPermit;
use crate::state::Api;

/// The memory for one job: its payload as it is stored, as an answer, and as JSON.
pub(crate) const ONE_JOB: usize = 1024 * 1024;
/// The memory for a page of jobs, which ends soon after they [weigh](weight)
/// [`MAX_PAGE_BYTES`](crate::paging::MAX_PAGE_BYTES).
pub(crate) const ONE_PAGE: usize = 8 * 1024 * 1024;
/// About how many bytes the small fields of a job have in an answer.
const JOB: usize = 512;
/// About how many bytes a delay of a retry policy has.
const DELAY: usize = 16;

impl Api {
    /// Acquires memory for whole jobs, [`ONE_JOB`] or [`ONE_PAGE`].
    ///
    /// # Errors
    /// 503 if it is not free before the deadline of a request that arrives now.
    pub(crate) async fn acquire_for_whole_jobs(&self, bytes: usize) -> Result<MemoryPermit, ApiError> {
        let permit = self.whole_jobs.acquire(bytes).await;
        permit.ok_or_else(|| ApiError::retry_later("too many requests read whole jobs at once"))
    }

    /// The request of a job, and the settings that apply to it.
    pub(crate) fn inspection(&self, policies: &Policies, topic: &Topic, delivery: Delivery) -> Inspection {
        let policy = policies.get(topic).map(AsRef::as_ref);
        Inspection::new(topic, delivery, policy, &self.retries.installation)
    }
}

/// About how many bytes a job has in an answer with its request and the settings that apply to it. The
/// policy of the topic counts for each job, because it is in the answer of each.
pub(crate) fn weight(policies: &Policies, topic: &Topic, delivery: &Delivery) -> usize {
    let entries = |list: &[(String, String)]| list.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>();
    let url = |url: &Callback| url.origin().len() + url.path().len();
    let retry = |retry: Option<&RetryPolicy>| retry.map_or(0, |retry| DELAY * retry.delays().len());
    let of_topic = policies.get(topic).map_or(0, |policy| {
        let expected = policy.expect_body.as_ref().map_or(0, String::len);
        entries(policy.headers.entries())
            + expected
            + policy.on_dead.as_ref().map_or(0, url)
            + policy.on_done.as_ref().map_or(0, url)
            + retry(policy.retry.as_ref())
    });
    // The job's own settings are in the answer twice: in its request, and in what applies.
    let own = url(&delivery.callback)
        + entries(delivery.headers.entries())
        + delivery.on_dead.as_deref().map_or(0, url)
        + delivery.on_done.as_deref().map_or(0, url)
        + retry(delivery.retry.as_ref());
    let body = delivery.body.bytes.len() / 3 * 4;
    JOB + body + entries(delivery.context.entries()) + 2 * own + of_topic
}
