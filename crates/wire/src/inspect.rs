//! A job as `GET /v1/jobs` and `GET /v1/jobs/{topic}/{id}` show it: with its request and the settings that
//! apply to it, if `include=request` asks for them.

use ringback_core::destination::Origin;
use ringback_core::job::{Delivery, Job, Topic};
use ringback_core::retry::InstallationRetry;
use ringback_core::store_types::ListedJob;
use ringback_core::topic_policy::Policy;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::effective::EffectiveSettings;
use super::job_answers::JobResponse;
use super::request_details::RequestDetails;

/// The value of `include` that asks for requests.
pub const INCLUDE_REQUEST: &str = "request";

/// A job, with its request if that was asked for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InspectedJob {
    /// The job.
    #[serde(flatten)]
    pub job: JobResponse,
    /// Whose it is, in a list of all tenants; absent if it belongs to none, and in other answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// In a list: where it is delivered, as `host:port`; absent for a pull job, and in other answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// With `include=request`: the request of the job. Absent once the job is done or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<RequestDetails>>,
    /// With `include=request`: the settings of the next attempt. Absent once the job is done or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<Box<EffectiveSettings>>,
}

impl InspectedJob {
    /// A job with its request and settings, if there is an inspection.
    pub fn new(job: Job, inspection: Option<Inspection>) -> Self {
        let (request, effective) = Inspection::split(inspection);
        Self { job: job.into(), tenant: None, host: None, request, effective }
    }
}

impl From<ListedJob> for InspectedJob {
    fn from(ListedJob { job, origin }: ListedJob) -> Self {
        Self { host: host_of(&origin), ..job.into() }
    }
}

impl From<Job> for InspectedJob {
    fn from(job: Job) -> Self {
        Self::new(job, None)
    }
}

/// Host and port of an origin; `None` for that of pull jobs.
pub fn host_of(origin: &str) -> Option<String> {
    Origin::parse(origin).map(|Origin { host, port, .. }| format!("{host}:{port}"))
}

/// The request and the settings that `include=request` adds to a job.
#[derive(Clone, Debug)]
pub struct Inspection {
    request: RequestDetails,
    effective: EffectiveSettings,
}

impl Inspection {
    /// The request of a job of this topic, and the settings that apply to it under the policy of the
    /// topic. `retry` are the retries of the installation.
    pub fn new(
        topic: &Topic,
        delivery: Delivery,
        policy: Option<&Policy>,
        retry: &InstallationRetry,
    ) -> Self {
        let effective = EffectiveSettings::new(topic, &delivery, policy, retry);
        Self { request: RequestDetails::masked(delivery), effective }
    }

    /// Both parts as the fields of an answer; both are `None` without an inspection.
    pub(super) fn split(this: Option<Self>) -> (Option<Box<RequestDetails>>, Option<Box<EffectiveSettings>>) {
        this.map(|Self { request, effective }| (Box::new(request), Box::new(effective))).unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeadJobDetails;
    use ringback_core::clock::Timestamp;
    use ringback_core::job::{Body, Callback, Tags};
    use ringback_core::state::State;

    fn job() -> Job {
        Job {
            key: ringback_core::job::JobKey { topic: "t".parse().unwrap(), id: "i".parse().unwrap() },
            state: State::Dead,
            due: Timestamp::default(),
            created: Timestamp::default(),
            attempts: 1,
            failures: 1,
            last: None,
            reason: Some("gone".to_owned()),
            tags: Tags::default(),
        }
    }

    fn inspection() -> Inspection {
        let body = Body { bytes: "{\"a\":[1, 2]}".into(), content_type: None };
        let delivery = Delivery::new(Callback::parse("http://h/").unwrap(), body);
        Inspection::new(&"t".parse().unwrap(), delivery, None, &InstallationRetry::none())
    }

    #[test]
    fn a_job_without_its_request_is_shown_as_ever() {
        let [plain, shown] = [
            serde_json::to_string(&JobResponse::from(job())),
            serde_json::to_string(&InspectedJob::from(job())),
        ];
        assert_eq!(plain.unwrap(), shown.unwrap());
    }

    #[test]
    fn a_listed_job_has_the_host_and_the_port_that_it_is_delivered_to() {
        let shown = |origin: &str| InspectedJob::from(ListedJob { job: job(), origin: origin.into() }).host;
        assert_eq!(shown("https://shop.example").as_deref(), Some("shop.example:443"));
        assert_eq!(shown("http://[::1]:8080").as_deref(), Some("[::1]:8080"));
        assert_eq!(shown(""), None, "a pull job");
    }

    #[test]
    fn a_job_and_a_dead_job_with_their_requests_can_be_read_back() {
        let shown = serde_json::to_string(&InspectedJob::new(job(), Some(inspection()))).unwrap();
        let fields =
            r#""reason":"gone","request":{"url":"http://h/","body":{"a":[1, 2]}},"effective":{"url":"#;
        assert!(shown.contains(fields), "{shown}");
        let back: InspectedJob = serde_json::from_str(&shown).unwrap();
        assert_eq!((back.job.reason.as_deref(), back.effective.unwrap().retry.max), (Some("gone"), 1));
        let died = Timestamp::from_millis(5);
        let dead = DeadJobDetails::new(job(), died, Some(inspection()));
        let back: DeadJobDetails = serde_json::from_str(&serde_json::to_string(&dead).unwrap()).unwrap();
        assert_eq!(back.died_at, died.to_string());
        assert_eq!(back.request.unwrap().body.unwrap().get(), "{\"a\":[1, 2]}");
    }
}
