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
    BodyProblems, ChangeProblems, CreateProblems, DeleteTopicProblems, FindProblems, ImportProblems,
    JobActionProblems, NoBodyProblems, QueryProblems, RedriveProblems, RemoveProblems, ResumeProblems,
    StoreProblems,
};
pub(crate) use self::pull::{
    BuryRequest, FinishAllRequest, ReleaseRequest, RenewRequest, ReserveRequest, RetryRequest,
};
pub(crate) use self::redrive::ReviveRequest;
