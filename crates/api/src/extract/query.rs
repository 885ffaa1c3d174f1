//! What the query of a call about many jobs asks for. All that is wrong with it is told at
//! once, parameter by parameter.

mod dead;
mod events;

use std::fmt::Display;

use axum::extract::{FromRequestParts, Query};
use http::request::Parts;
use ringback_core::contract::{Cursor, Filter};
use ringback_core::job::Topic;
use ringback_core::state::State;
use ringback_core::wire::{DEFAULT_PAGE, FieldError, MAX_PAGE, Problem};

pub(crate) use self::dead::{DeadQuery, PurgeQuery};
pub(crate) use self::events::EventsQuery;
use crate::error::ApiError;
use crate::paging::Place;

/// More parameters are not even looked at.
const MOST: usize = 64;
/// What of a value a message shows, in characters.
const SHOWN: usize = 80;

const STATES: &str = "delayed, ready, reserved or dead; without it all of them";
const CURSOR: &str = "what next said on a page of the same topic and state; without it the first page";
const TOPICS_CURSOR: &str = "what next said on a page of topics; without it the first page";

/// Which page of which jobs.
#[derive(Debug)]
pub(crate) struct PageQuery {
    pub(crate) filter: Filter,
    /// Where the page begins; `None`: it is the first.
    pub(crate) from: Option<Place>,
    pub(crate) limit: usize,
}

/// Which page of topics.
#[derive(Debug)]
pub(crate) struct TopicsQuery {
    /// The page begins behind this one; `None`: it is the first.
    pub(crate) behind: Option<Topic>,
    pub(crate) limit: usize,
}

/// Which jobs.
#[derive(Debug)]
pub(crate) struct FilterQuery(pub(crate) Filter);

impl<S: Sync> FromRequestParts<S> for PageQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut given = Given::new(parts, &["topic", "state", "cursor", "limit"])?;
        let filter = given.filter();
        let from = given.read("cursor", CURSOR, |text| text.parse().map_err(|_| is_no("cursor", text)));
        let limit = given.limit();
        given.all_right()?;
        Ok(Self { filter, from, limit })
    }
}

impl<S: Sync> FromRequestParts<S> for TopicsQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut given = Given::new(parts, &["cursor", "limit"])?;
        let behind =
            given.read("cursor", TOPICS_CURSOR, |text| text.parse().map_err(|_| is_no("cursor", text)));
        let limit = given.limit();
        given.all_right()?;
        Ok(Self { behind, limit })
    }
}

impl<S: Sync> FromRequestParts<S> for FilterQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut given = Given::new(parts, &["topic", "state"])?;
        let filter = given.filter();
        given.all_right()?;
        Ok(Self(filter))
    }
}

/// Whether the jobs of a topic are removed with it, and from where on.
#[derive(Debug)]
pub(crate) enum ForceQuery {
    No,
    Yes(Option<Cursor>),
}

impl<S: Sync> FromRequestParts<S> for ForceQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut given = Given::new(parts, &["force", "cursor"])?;
        let force =
            given.read("force", "true or false", |text| text.parse().map_err(|_| is_no("force", text)));
        let allowed = "what next said in the answer before; without it from the beginning";
        let from = given.read("cursor", allowed, |text| text.parse().map_err(|_| is_no("cursor", text)));
        if from.is_some() && force != Some(true) {
            given.mistake("cursor", "given without force", "only together with force=true");
        }
        given.all_right()?;
        Ok(if force == Some(true) { Self::Yes(from) } else { Self::No })
    }
}

/// For a cursor that no place belongs to any more.
pub(crate) fn outdated_cursor() -> ApiError {
    Problem::fields(vec![FieldError {
        field: "cursor".to_owned(),
        detail: "the store was restarted since the page that this came from, and the place is lost; \
                 begin again without a cursor"
            .to_owned(),
        allowed: CURSOR.to_owned(),
    }])
    .into()
}

/// The parameters of a query, and what is wrong with them so far.
struct Given {
    pairs: Vec<(String, String)>,
    mistakes: Vec<FieldError>,
}

impl Given {
    fn new(parts: &Parts, known: &[&str]) -> Result<Self, ApiError> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let Query(pairs) = pairs.map_err(|rejection| Problem::unreadable(rejection.body_text()))?;
        if pairs.len() > MOST {
            return Err(Problem::unreadable(format!("more than {MOST} query parameters")).into());
        }
        let mut given = Self { pairs: Vec::new(), mistakes: Vec::new() };
        for (name, value) in pairs {
            if !known.contains(&name.as_str()) {
                given.mistake(&shown(&name), "unknown parameter", known.join(", "));
            } else if given.pairs.iter().any(|(earlier, _)| *earlier == name) {
                given.mistake(&name, "given twice", "once");
            } else {
                given.pairs.push((name, value));
            }
        }
        Ok(given)
    }

    fn filter(&mut self) -> Filter {
        let topic = self.read("topic", Topic::ALLOWED, |text| text.parse().map_err(|_| is_no("topic", text)));
        let named = |text: &str| State::ALL.into_iter().find(|state| state.name() == text);
        let state = self.read("state", STATES, |text| match named(text) {
            Some(state) if state.is_terminal() => {
                Err(format!("{text} jobs have ended and are neither listed nor exported"))
            }
            Some(state) => Ok(state),
            None => Err(is_no("state", text)),
        });
        Filter { topic, state }
    }

    fn limit(&mut self) -> usize {
        let limit = self.read("limit", format_args!("1 to {MAX_PAGE}"), |text| {
            // The parser of numbers would take a sign too.
            let limit = text.parse().ok().filter(|_| !text.starts_with('+'));
            limit.filter(|limit| (1..=MAX_PAGE).contains(limit)).ok_or_else(|| is_no("limit", text))
        });
        limit.unwrap_or(DEFAULT_PAGE)
    }

    /// A parameter's value, where it is there and right; else `parse` says what is wrong.
    fn read<T>(
        &mut self,
        name: &str,
        allowed: impl Display,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (_, text) = self.pairs.iter().find(|(known, _)| known == name)?;
        parse(text).map_err(|detail| self.mistake(name, detail, allowed)).ok()
    }

    fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(known, _)| known == name)
    }

    fn mistake(&mut self, field: &str, detail: impl Display, allowed: impl Display) {
        let (field, detail, allowed) = (field.to_owned(), detail.to_string(), allowed.to_string());
        self.mistakes.push(FieldError { field, detail, allowed });
    }

    fn all_right(self) -> Result<(), ApiError> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(Problem::fields(self.mistakes).into()) }
    }
}

fn is_no(name: &str, text: &str) -> String {
    format!("{:?} is no {name}", shown(text))
}

/// A text cut to what a message can carry.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

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
    async fn a_query_may_say_nothing_or_all() {
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
    async fn ended_jobs_cannot_be_asked_for_and_are_told_apart() {
        for (state, told) in [("done", true), ("cancelled", true), ("Dead", false), ("", false)] {
            let problem = page(&format!("?state={state}")).await.unwrap_err();
            assert_eq!(problem.errors[0].detail.contains("have ended"), told, "{problem:?}");
            assert_eq!(problem.errors[0].allowed, STATES);
        }
    }

    #[tokio::test]
    async fn a_flood_of_parameters_is_not_answered_one_by_one() {
        assert_eq!(page(&format!("?{}", "a&".repeat(65))).await.unwrap_err().status, 400);
    }
}
