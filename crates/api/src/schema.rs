//! OpenAPI schemas of requests, path parameters and problems. They are documentation only: the
//! parsers of requests are in `ringback_core::wire`.

mod events;
mod job;
mod params;
mod policy;
mod problems;
mod pull;
mod redrive;

pub(crate) use self::events::{EventKind, EventKinds};
pub(crate) use self::job::{ImportLine, JobRequest, ListedState, RescheduleRequest};
pub(crate) use self::params::{JobParams, ReceiptParams, RedriveParams, TopicParams};
pub(crate) use self::policy::PolicyRequest;
pub(crate) use self::problems::{
    AuditProblems, BatchProblems, BeginRedriveProblems, CancelProblems, DeadProblems, DeleteTopicProblems,
    EventsProblems, ExportProblems, FinishAllProblems, GetProblems, ImportProblems, JobActionProblems,
    ListProblems, PauseProblems, PurgeOneProblems, PurgeProblems, PutPolicyProblems, ReceiptProblems,
    RedriveProblems, RedrivesProblems, RepairProblems, RescheduleProblems, ReserveProblems, ResumeProblems,
    StatsProblems, SubmitProblems, TopicProblems, TopicsProblems,
};
pub(crate) use self::pull::{
    BuryRequest, FinishAllRequest, ReleaseRequest, RenewRequest, ReserveRequest, RetryRequest,
};
pub(crate) use self::redrive::ReviveRequest;
