//! Extractors: the parts of a request, parsed for the handlers. The caller's trace, the names in the
//! path, the query, and a body of the right media type and size.

mod batch;
mod body;
mod idempotency;
mod json;
mod media_type;
mod path;
mod query;
mod trace;

#[cfg(test)]
pub(crate) use self::batch::MAX_ITEMS;
pub(crate) use self::batch::{BatchBody, ImportBody, Items};
pub(crate) use self::body::Upload;
pub(crate) use self::idempotency::{IdempotencyKey, NoIdempotencyKey, key_and_id};
pub(crate) use self::json::{JsonBody, MaybeJson, NoBody, PatchBody};
pub(crate) use self::path::{
    BulkPath, CredentialPath, DestinationPath, JobPath, KeyPath, OrderKeyPath, QuotaPath, ReceiptPath,
    SchedulePath, SecretPath, TopicPath, check_topics_of, parse_receipt, unknown_access_key, unknown_bulk,
    unknown_receipt, unknown_secret,
};
pub(crate) use self::query::{
    AuditLogFilter, AuditLogQuery, DeadPageQuery, DetachQuery, EndedJobsQuery, ErasureQuery, ForceQuery,
    ForecastQuery, HistoryQuery, Include, IncludeOfEnds, PageQuery, PurgeQuery, PutFrom, Query,
    SchedulesQuery, TopicsQuery, UpcomingQuery, cursor_of, is_no, outdated_cursor,
};
pub(crate) use self::trace::{RequestTrace, trace_of, trace_parent};
