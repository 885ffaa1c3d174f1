//! OpenAPI schemas of path parameters.
#![expect(dead_code, reason = "the fields are only read by the schema macro")]

use utoipa::IntoParams;

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
