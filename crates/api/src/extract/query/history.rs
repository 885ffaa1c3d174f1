//! Queries of the history: pages of ended jobs, of all jobs or of one, and erasures.

use std::str::FromStr;

use ringback_archive::history::Cursor;
use ringback_core::job::{JobId, Tags};
use ringback_wire::{END_STATES, HOST, HistoryFilter, REASON, end_state, history_host, is_reason};

use super::FromQuery;
use super::parameters::{Parameters, is_no, shortened};

const CURSOR: &str = "`next` of a page of the same filter; omit it for the first page";
const INCLUDED: &str = "request, attempts, or both, separated by a comma; omit it for ends alone";

/// What an answer has besides the ended jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IncludeOfEnds {
    /// What was submitted.
    pub(crate) request: bool,
    /// The attempts that were logged.
    pub(crate) attempts: bool,
}

impl FromStr for IncludeOfEnds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut include = Self::default();
        for name in text.split(',') {
            let part = match name {
                "request" => &mut include.request,
                "attempts" => &mut include.attempts,
                _ => return Err(format!("{:?} cannot be included", shortened(name))),
            };
            if std::mem::replace(part, true) {
                return Err(format!("{name} is named twice"));
            }
        }
        Ok(include)
    }
}

impl FromQuery for IncludeOfEnds {
    fn read(query: &mut Parameters) -> Self {
        query.read("include", INCLUDED, str::parse).unwrap_or_default()
    }
}

impl FromQuery for HistoryFilter {
    fn read(query: &mut Parameters) -> Self {
        Self {
            topic: query.topic(),
            id: query.parse("id", JobId::ALLOWED),
            tag: query.text("tag", Tags::ALLOWED_TAG, Tags::is_tag),
            state: query
                .read("state", END_STATES, |text| end_state(text).ok_or_else(|| is_no("state", text))),
            reason: query.text("reason", REASON, is_reason),
            host: query.read("host", HOST, |text| history_host(text).ok_or_else(|| is_no("host", text))),
            finished_after: query.time("finished_after"),
            finished_before: query.time("finished_before"),
        }
    }
}

pub(crate) struct HistoryQuery {
    pub(crate) filter: HistoryFilter,
    pub(crate) page: EndedJobsQuery,
}

impl FromQuery for HistoryQuery {
    fn read(query: &mut Parameters) -> Self {
        Self { filter: HistoryFilter::read(query), page: EndedJobsQuery::read(query) }
    }
}

/// A page of the history of one job.
pub(crate) struct EndedJobsQuery {
    /// The page begins after this place; `None` for the first page.
    pub(crate) after: Option<Cursor>,
    pub(crate) limit: usize,
    pub(crate) include: IncludeOfEnds,
}

impl FromQuery for EndedJobsQuery {
    fn read(query: &mut Parameters) -> Self {
        let (after, limit) = (query.parse("cursor", CURSOR), query.limit());
        Self { after, limit, include: IncludeOfEnds::read(query) }
    }
}

/// Which ended jobs to erase: those of jobs with a tag, or with an id of a topic.
pub(crate) struct ErasureQuery {
    pub(crate) filter: HistoryFilter,
}

impl FromQuery for ErasureQuery {
    fn read(query: &mut Parameters) -> Self {
        const EITHER: &str = "tag, or topic and id";
        let filter = HistoryFilter { topic: query.topic(), ..HistoryFilter::default() };
        let id = query.parse("id", JobId::ALLOWED);
        let tag = query.text("tag", Tags::ALLOWED_TAG, Tags::is_tag);
        match (query.has("id"), query.has("tag")) {
            (false, false) => {
                query.mistake("tag", "missing, and so is id: what is to be erased is not named", EITHER);
            }
            (true, true) => query.mistake("tag", "given together with id", EITHER),
            (true, false) if !query.has("topic") => {
                query.mistake("topic", "missing; an id is one of its topic", EITHER);
            }
            _ => {}
        }
        Self { filter: HistoryFilter { id, tag, ..filter } }
    }
}
