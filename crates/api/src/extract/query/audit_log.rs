//! The query of the audit log: which entries to find, and where the page begins.

use ringback_core::access::KeyId;
use ringback_core::clock::Timestamp;
use ringback_core::job::Topic;
use ringback_core::store_types::AuditLogId;

use super::FromQuery;
use super::parameters::{Parameters, is_no};

const CURSOR: &str = "`next` of a page of the same filter; omit it for the first page";
const WHO: &str = "key: and the id of a key, root or open";

/// Which entries of the audit log to find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AuditLogFilter {
    pub(crate) topic: Option<Topic>,
    /// Only those of the operation with this name, which is not checked here.
    pub(crate) operation: Option<String>,
    pub(crate) who: Option<String>,
    /// Only those at this time or later.
    pub(crate) after: Option<Timestamp>,
    /// Only those before this time.
    pub(crate) before: Option<Timestamp>,
}

impl FromQuery for AuditLogFilter {
    fn read(query: &mut Parameters) -> Self {
        let is_caller = |text: &str| {
            ["root", "open"].contains(&text)
                || text.strip_prefix("key:").is_some_and(|id| id.parse::<KeyId>().is_ok())
        };
        Self {
            topic: query.topic(),
            operation: query.value("operation"),
            who: query.read("who", WHO, |text| {
                is_caller(text).then(|| text.to_owned()).ok_or_else(|| is_no("caller", text))
            }),
            after: query.time("after"),
            before: query.time("before"),
        }
    }
}

pub(crate) struct AuditLogQuery {
    pub(crate) filter: AuditLogFilter,
    /// The page begins after this entry; `None` for the first page.
    pub(crate) from: Option<AuditLogId>,
    pub(crate) limit: usize,
}

impl FromQuery for AuditLogQuery {
    fn read(query: &mut Parameters) -> Self {
        let filter = AuditLogFilter::read(query);
        Self { filter, from: query.parse("cursor", CURSOR), limit: query.limit() }
    }
}
