//! The history: reads and erases ended jobs in the archive, through an archiver that runs as a child of this process.

use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use ringback_admission::Principal;
use ringback_archive::erasure::Erasure;
use ringback_archive::history::{HistoryFilter, HistoryPage, HistoryRequest, QueryError};
use ringback_archive::pipe::{ChildHistory, ChildProgram};
use ringback_core::clock::Timestamp;
use ringback_core::job::Topic;

use crate::error::ApiError;

/// The history, if this process has an archive.
pub(crate) struct History {
    child: Option<ChildHistory>,
    /// Whether the last query had no answer, so that this is logged once.
    is_away: AtomicBool,
}

impl History {
    pub(crate) fn new(program: Option<ChildProgram>) -> Self {
        Self { child: program.map(ChildHistory::new), is_away: AtomicBool::new(false) }
    }

    /// Checks that there is an archive.
    ///
    /// # Errors
    /// 409 without one.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        self.child().map(|_| ())
    }

    fn child(&self) -> Result<&ChildHistory, ApiError> {
        self.child.as_ref().ok_or_else(|| {
            let detail =
                "this API has no archive, so it has no history: set RINGBACK_ARCHIVE as for the archivers";
            ApiError::new(StatusCode::CONFLICT, detail)
        })
    }

    /// A page of ended jobs.
    ///
    /// # Errors
    /// 409 without an archive, 503 if it cannot be read or is too slow.
    pub(crate) async fn page(&self, ask: HistoryRequest) -> Result<HistoryPage, ApiError> {
        self.answered(self.child()?.page(ask).await)
    }

    /// Erases some of the ended jobs that match. Returns how many; 0 if none is left.
    ///
    /// # Errors
    /// 409 without an archive, 503 if the archive fails or is too slow; it may have erased some all the same.
    pub(crate) async fn erase(&self, erasure: Erasure) -> Result<u64, ApiError> {
        let child = self.child()?;
        self.answered(child.erase(erasure).await).map_err(ApiError::with_unknown_effect)
    }

    fn answered<T>(&self, answer: Result<T, QueryError>) -> Result<T, ApiError> {
        match answer {
            Ok(answer) => {
                if self.is_away.swap(false, Ordering::Relaxed) {
                    tracing::info!("the history can be read again");
                }
                Ok(answer)
            }
            Err(QueryError::Slow) => Err(ApiError::retry_later(
                "the archive did not answer in time; ask for less, by topic, id, tag or a shorter time, or retry later",
            )),
            Err(error) => {
                if !self.is_away.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "the history cannot be read");
                }
                // What is wrong may name the database, which not each caller is to know.
                Err(ApiError::retry_later("the archive cannot be read now; the log of the API says why"))
            }
        }
    }
}

/// Limits a filter to the ended jobs that a caller may see: those of its tenant, and of its key's topics.
pub(crate) fn filter_of(caller: &Principal, filter: &ringback_wire::HistoryFilter) -> HistoryFilter {
    let ms = |time: Timestamp| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let topics = match &filter.topic {
        Some(topic) => std::slice::from_ref(topic),
        None => caller.topics(),
    };
    HistoryFilter {
        tenant: caller.tenant().map_or_else(String::new, |tenant| tenant.as_str().to_owned()),
        topics: topics.iter().map(|topic| Topic::name(topic).to_owned()).collect(),
        not_topics: Vec::new(),
        id: filter.id.as_ref().map(ToString::to_string),
        tag: filter.tag.clone(),
        state: filter.state.map(str::to_owned),
        reason: filter.reason.clone(),
        host: filter.host.clone(),
        after: filter.finished_after.map(ms),
        before: filter.finished_before.map(ms),
    }
}
