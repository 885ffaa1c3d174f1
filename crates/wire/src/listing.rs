//! Answers of listing and importing jobs, and the limits of both.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::inspect::InspectedJob;
use super::problem::Problem;
pub use ringback_core::store_types::MAX_PAGE;

/// The default number of jobs of a page.
pub const DEFAULT_PAGE: usize = 100;
/// The most lines of one import.
pub const MAX_IMPORT_LINES: usize = 10_000;
/// The most bytes of one import.
pub const MAX_IMPORT_BYTES: usize = 16 * 1024 * 1024;

/// A page of jobs. It may be empty although there are more pages.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JobsResponse {
    /// The jobs.
    pub items: Vec<InspectedJob>,
    /// The cursor of the next page; null on the last page. Opaque.
    pub next: Option<String>,
}

/// The answer to an import. The counts add up to the lines that are not blank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportResponse {
    /// Lines that created a job.
    pub created: usize,
    /// Lines whose job existed already, with the same content. Nothing changed.
    pub repeated: usize,
    /// Lines that were refused.
    pub refused: usize,
    /// The problem of each refused line, in order.
    pub problems: Vec<ImportProblem>,
}

/// The problem of one line of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportProblem {
    /// The number of the line, from 1; blank lines count.
    pub line: usize,
    /// The status as if it had been submitted alone: 400, 409, 413, 422 or 503.
    pub status: u16,
    /// The problem.
    pub problem: Problem,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_has_no_next_cursor() {
        let page = JobsResponse { items: Vec::new(), next: None };
        assert_eq!(serde_json::to_string(&page).unwrap(), r#"{"items":[],"next":null}"#);
    }

    #[test]
    fn an_import_is_answered_with_counts_and_a_problem_per_refused_line() {
        let problem = Problem::new(http::StatusCode::CONFLICT, "another job");
        let answer = ImportResponse {
            created: 2,
            repeated: 1,
            refused: 1,
            problems: vec![ImportProblem { line: 3, status: 409, problem }],
        };
        let json = r#"{"created":2,"repeated":1,"refused":1,"problems":[{"line":3,"status":409,"problem":{"type":"about:blank","status":409,"title":"Conflict","detail":"another job"}}]}"#;
        assert_eq!(serde_json::to_string(&answer).unwrap(), json);
        assert_eq!(serde_json::from_str::<ImportResponse>(json).unwrap(), answer);
    }
}
