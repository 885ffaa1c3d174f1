//! OpenAPI schemas of the parameters of paths, and of the values of query parameters.
#![expect(dead_code, reason = "the fields are only read by the schema macro")]

use utoipa::{IntoParams, ToSchema};

/// A job by topic and id.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct JobParams {
    /// The job's topic
    #[param(pattern = "^[A-Za-z0-9._-]{1,64}$")]
    topic: String,
    /// The job's id
    #[param(pattern = "^[A-Za-z0-9._~:@+=,-]{1,128}$")]
    id: String,
}

/// A topic by name.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TopicParams {
    /// The topic
    #[param(pattern = "^[A-Za-z0-9._-]{1,64}$")]
    topic: String,
}

/// A redrive by topic and id.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct RedriveParams {
    /// The topic
    #[param(pattern = "^[A-Za-z0-9._-]{1,64}$")]
    topic: String,
    /// The revival's id
    #[param(pattern = "^[0-9a-f]{16}$")]
    revival: String,
}

/// A pull receipt.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ReceiptParams {
    /// The receipt of a reserved job
    receipt: String,
}

/// The states that can be listed.
#[derive(ToSchema)]
#[schema(as = Listed, rename_all = "lowercase")]
pub(crate) enum ListedState {
    Delayed,
    Ready,
    Reserved,
    Dead,
}

/// What can be added to a job.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum Included {
    Request,
}

/// Kinds of events.
#[derive(ToSchema)]
#[schema(example = json!(["done", "dead"]))]
pub(crate) struct EventKinds(Vec<EventKind>);

/// A kind of event.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(crate) enum EventKind {
    Submitted,
    Promoted,
    Attempt,
    Done,
    Dead,
    Cancelled,
}
