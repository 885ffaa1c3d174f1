//! The answers of calls that are about many jobs: a page of them, and what became of an
//! import. Their bounds are here too.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{JobAnswer, Problem};

/// The most jobs of a page.
pub const MAX_PAGE: usize = 1000;
/// The jobs of a page where the caller does not say how many.
pub const DEFAULT_PAGE: usize = 100;
/// The most lines of one import.
pub const MAX_IMPORT_LINES: usize = 10_000;
/// The most bytes of one import.
pub const MAX_IMPORT_BYTES: usize = 16 * 1024 * 1024;

/// A page of jobs. It may be empty and still have a next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PageAnswer {
    /// The jobs.
    pub items: Vec<JobAnswer>,
    /// Where the next page begins; null after the last one. Opaque.
    pub next: Option<String>,
}

/// The answer to an import. The counts add up to the lines that are not blank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportAnswer {
    /// Lines that made a new job.
    pub created: usize,
    /// Lines whose job was known already, with the same content; nothing changed.
    pub repeated: usize,
    /// Lines that were not taken.
    pub refused: usize,
    /// What was wrong with each line that was not taken, in order.
    pub problems: Vec<ImportProblem>,
}

/// What was wrong with a line of an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportProblem {
    /// Which line of the request, from 1; blank lines count.
    pub line: usize,
    /// As if it had been submitted alone: 400, 409, 413, 422 or 503.
    pub status: u16,
    /// The problem.
    pub problem: Problem,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_says_that_nothing_follows() {
        let page = PageAnswer { items: Vec::new(), next: None };
        assert_eq!(serde_json::to_string(&page).unwrap(), r#"{"items":[],"next":null}"#);
    }

    #[test]
    fn an_import_is_answered_with_counts_and_a_problem_per_refused_line() {
        let problem = Problem::new(http::StatusCode::CONFLICT, "another job");
        let answer = ImportAnswer {
            created: 2,
            repeated: 1,
            refused: 1,
            problems: vec![ImportProblem { line: 3, status: 409, problem }],
        };
        let json = r#"{"created":2,"repeated":1,"refused":1,"problems":[{"line":3,"status":409,"problem":{"type":"about:blank","status":409,"title":"Conflict","detail":"another job"}}]}"#;
        assert_eq!(serde_json::to_string(&answer).unwrap(), json);
        assert_eq!(serde_json::from_str::<ImportAnswer>(json).unwrap(), answer);
    }
}
