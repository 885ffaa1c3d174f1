//! OpenAPI schema of the event kinds that a stream can be limited to.

use utoipa::ToSchema;

/// Kinds of events.
#[derive(ToSchema)]
#[schema(example = json!(["done", "dead"]))]
#[expect(dead_code, reason = "only used by the schema macro")]
pub(crate) struct EventKinds(Vec<EventKind>);

/// A kind of event.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only used by the schema macro")]
pub(crate) enum EventKind {
    Submitted,
    Promoted,
    Attempt,
    Done,
    Dead,
    Cancelled,
}
