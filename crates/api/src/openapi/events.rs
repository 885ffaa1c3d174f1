//! What may be asked of the stream of events.

use utoipa::ToSchema;

/// Some kinds of events.
#[derive(ToSchema)]
#[schema(example = json!(["done", "dead"]))]
#[expect(dead_code, reason = "only its shape is used")]
pub(crate) struct EventKinds(Vec<EventKind>);

/// A kind of events.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its shape is used")]
pub(crate) enum EventKind {
    Submitted,
    Promoted,
    Attempt,
    Done,
    Dead,
    Cancelled,
}
