//! The queries of lists, exports and topic deletion. All mistakes of a query are reported at
//! once, parameter by parameter.

mod dead;
mod events;
mod parameters;

use axum::extract::FromRequestParts;
use http::request::Parts;
use ringback_core::contract::{Cursor, Filter};
use ringback_core::job::Topic;
use ringback_core::state::State;

pub(crate) use self::dead::{DeadQuery, PurgeQuery};
pub(crate) use self::events::EventsQuery;
use self::parameters::{Parameters, is_no};
use crate::error::{ApiError, invalid_field};
use crate::paging::ListCursor;

const STATES: &str = "delayed, ready, reserved or dead; without it all of them";
const CURSOR: &str = "the next of a page of the same topic and state; without it the first page";
const TOPICS_CURSOR: &str = "the next of a page of topics; without it the first page";
const FORCE_CURSOR: &str = "the next of the previous answer; without it from the beginning";

/// A page of the job list.
#[derive(Debug)]
pub(crate) struct PageQuery {
    pub(crate) filter: Filter,
    /// Where the page begins; `None` for the first page.
    pub(crate) from: Option<ListCursor>,
    pub(crate) limit: usize,
}

impl<S: Sync> FromRequestParts<S> for PageQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut query = Parameters::new(parts, &["topic", "state", "cursor", "limit"])?;
        let filter = filter(&mut query);
        let from = query.parse("cursor", CURSOR);
        let limit = query.limit();
        query.finish()?;
        Ok(Self { filter, from, limit })
    }
}

/// A page of the topic list.
#[derive(Debug)]
pub(crate) struct TopicsQuery {
    /// The page begins after this topic; `None` for the first page.
    pub(crate) after: Option<Topic>,
    pub(crate) limit: usize,
}

impl<S: Sync> FromRequestParts<S> for TopicsQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut query = Parameters::new(parts, &["cursor", "limit"])?;
        let after = query.parse("cursor", TOPICS_CURSOR);
        let limit = query.limit();
        query.finish()?;
        Ok(Self { after, limit })
    }
}

/// Which jobs to export.
#[derive(Debug)]
pub(crate) struct FilterQuery(pub(crate) Filter);

impl<S: Sync> FromRequestParts<S> for FilterQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut query = Parameters::new(parts, &["topic", "state"])?;
        let filter = filter(&mut query);
        query.finish()?;
        Ok(Self(filter))
    }
}

/// Whether the jobs of a topic are deleted with it, and where to continue.
#[derive(Debug)]
pub(crate) enum ForceQuery {
    No,
    Yes(Option<Cursor>),
}

impl<S: Sync> FromRequestParts<S> for ForceQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut query = Parameters::new(parts, &["force", "cursor"])?;
        let force = query.parse("force", "true or false");
        let from = query.parse("cursor", FORCE_CURSOR);
        if from.is_some() && force != Some(true) {
            query.mistake("cursor", "given without force", "only together with force=true");
        }
        query.finish()?;
        Ok(if force == Some(true) { Self::Yes(from) } else { Self::No })
    }
}

fn filter(query: &mut Parameters) -> Filter {
    let topic = query.topic();
    let named = |text: &str| State::ALL.into_iter().find(|state| state.name() == text);
    let state = query.read("state", STATES, |text| match named(text) {
        Some(state) if state.is_terminal() => {
            Err(format!("{text} jobs have ended and are neither listed nor exported"))
        }
        Some(state) => Ok(state),
        None => Err(is_no("state", text)),
    });
    Filter { topic, state }
}

/// The 422 for a cursor of before the store was restarted.
pub(crate) fn outdated_cursor() -> ApiError {
    let detail = "the store was restarted since this cursor was issued; begin again without a cursor";
    invalid_field("cursor", detail, CURSOR).into()
}

#[cfg(test)]
mod tests {
    use http::Request;
    use ringback_core::wire::Problem;

    use super::*;

    async fn page(query: &str) -> Result<PageQuery, Problem> {
        let (mut parts, ()) =
            Request::builder().uri(format!("/v1/jobs{query}")).body(()).unwrap().into_parts();
        PageQuery::from_request_parts(&mut parts, &()).await.map_err(|error| error.0)
    }

    async fn wrong(query: &str) -> Vec<(String, String)> {
        let problem = page(query).await.unwrap_err();
        assert_eq!(problem.status, 422, "{query}: {problem:?}");
        problem.errors.into_iter().map(|error| (error.field, error.allowed)).collect()
    }

    #[tokio::test]
    async fn all_parameters_are_optional() {
        let query = page("").await.unwrap();
        assert_eq!((query.filter, query.limit), (Filter::default(), 100));
        assert!(query.from.is_none());
        let query = page("?topic=a.b&state=dead&limit=1000&cursor=0-1f-2").await.unwrap();
        let filter = Filter { topic: Some("a.b".parse().unwrap()), state: Some(State::Dead) };
        assert_eq!((query.filter, query.limit), (filter, 1000));
        assert_eq!(query.from.unwrap().to_string(), "0-1f-2");
    }

    #[tokio::test]
    async fn every_wrong_parameter_is_named() {
        let all = wrong("?colour=red&topic=a%20b&state=x&cursor=y&limit=0&limit=1&").await;
        let names: Vec<_> = all.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(names, ["colour", "limit", "topic", "state", "cursor", "limit"]);
        assert_eq!(all[0].1, "topic, state, cursor, limit");
        for limit in ["", "0", "1001", "-1", "+5", "ten", "1.5", "99999999999999999999"] {
            assert_eq!(wrong(&format!("?limit={limit}")).await[0].0, "limit", "{limit}");
        }
        assert_eq!(wrong("?topic=").await[0].0, "topic");
        assert_eq!(wrong("?cursor=%ff").await[0].0, "cursor");
    }

    #[tokio::test]
    async fn ended_jobs_cannot_be_listed_and_the_message_says_so() {
        for (state, says_so) in [("done", true), ("cancelled", true), ("Dead", false), ("", false)] {
            let problem = page(&format!("?state={state}")).await.unwrap_err();
            assert_eq!(problem.errors[0].detail.contains("have ended"), says_so, "{problem:?}");
            assert_eq!(problem.errors[0].allowed, STATES);
        }
    }

    #[tokio::test]
    async fn a_flood_of_parameters_is_not_answered_one_by_one() {
        assert_eq!(page(&format!("?{}", "a&".repeat(65))).await.unwrap_err().status, 400);
    }
}
