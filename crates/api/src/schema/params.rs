//! OpenAPI schemas of the parameters of paths, and of lists in queries.
#![expect(dead_code, reason = "the fields are only read by the schema macro")]

use std::collections::HashSet;

use ringback_wire::schema::{
    BulkId, CredentialNameText, HistoryCursor, HostAndPort, JobIdText, OrderKeyText, QuotaName, ReceiptText,
    ScheduleIdText, TopicName,
};
use utoipa::{IntoParams, ToSchema};

/// A job by topic and id.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct JobParams {
    /// The job's topic
    topic: TopicName,
    /// The job's id
    id: JobIdText,
}

/// A topic by name.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TopicParams {
    /// The topic
    topic: TopicName,
}

/// A key of jobs by topic and key.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OrderKeyParams {
    /// The topic of the jobs
    topic: TopicName,
    /// Their key
    key: OrderKeyText,
}

/// A credential by name.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct CredentialParams {
    /// The credential's name
    credential: CredentialNameText,
}

/// A destination by host, or by host and port.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct DestinationParams {
    /// A host for all of its ports, or a host and a port
    host: HostAndPort,
}

/// A schedule by id.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ScheduleParams {
    /// The schedule's id
    id: ScheduleIdText,
}

/// A quota by tenant.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct QuotaParams {
    /// The tenant; `*` stands for every tenant that does not have a quota of its own
    tenant: QuotaName,
}

/// A pull receipt.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ReceiptParams {
    /// The receipt of a reserved job
    receipt: ReceiptText,
}

/// A page of ended jobs.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryPageParams {
    /// `next` of the previous page; opaque
    cursor: Option<HistoryCursor>,
    /// The most ended jobs of the page; 100 by default
    #[param(example = 100, minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Add what was submitted, the attempts that were logged, or both
    #[param(style = Form, explode = false)]
    include: Option<HistoryParts>,
}

/// What can be added to a job.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum IncludedInJob {
    Request,
}

/// Where what is put can come from.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum RestoreSource {
    Backup,
}

/// What can be added to an ended job.
#[derive(ToSchema)]
#[schema(min_items = 1, example = json!(["request", "attempts"]))]
pub(crate) struct HistoryParts(HashSet<HistoryPart>);

/// A part of an ended job: what was submitted, or the attempts that were logged.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum HistoryPart {
    Request,
    Attempts,
}

/// Kinds of events.
#[derive(ToSchema)]
#[schema(min_items = 1, example = json!(["done", "dead"]))]
pub(crate) struct EventKinds(HashSet<EventKindName>);

/// A kind of event.
#[derive(ToSchema)]
#[schema(as = EventKind, rename_all = "lowercase")]
pub(crate) enum EventKindName {
    Submitted,
    Promoted,
    Attempt,
    Done,
    Dead,
    Cancelled,
}

/// A bulk operation by id.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct BulkParams {
    /// The operation's id
    bulk: BulkId,
}
