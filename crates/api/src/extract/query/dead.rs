//! What a call about the dead jobs of a topic asks for: the topic in its path, which of them in
//! its query.

use axum::extract::FromRequestParts;
use http::request::Parts;
use ringback_core::clock::Timestamp;
use ringback_core::contract::{DeadCursor, DeadFilter};
use ringback_core::wire::{DEFAULT_PAGE, MAX_PAGE, REASON, is_reason, parse_time};

use super::{Given, is_no};
use crate::error::ApiError;
use crate::extract::TopicPath;
use crate::routes::dead::PurgePlace;

const TIME: &str = "a time by RFC 3339, such as 2026-11-20T09:30:00Z";
const CURSOR: &str = "what next said before, of the same topic and filter; without it from the beginning";

/// Which page of which dead jobs.
#[derive(Debug)]
pub(crate) struct DeadQuery {
    pub(crate) filter: DeadFilter,
    pub(crate) from: Option<DeadCursor>,
    pub(crate) limit: usize,
}

/// Which dead jobs to purge.
#[derive(Debug)]
pub(crate) struct PurgeQuery {
    pub(crate) filter: DeadFilter,
    pub(crate) from: Option<PurgePlace>,
}

impl<S: Send + Sync> FromRequestParts<S> for DeadQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let TopicPath(topic) = TopicPath::from_request_parts(parts, state).await?;
        let mut given = Given::new(parts, &["reason", "died_after", "died_before", "cursor", "limit"])?;
        let (reason, after, before) = filter(&mut given);
        let from = given.read("cursor", CURSOR, |text| text.parse().map_err(|_| is_no("cursor", text)));
        let limit = given.read("limit", format_args!("1 to {MAX_PAGE}"), |text| {
            // The parser of numbers would take a sign too.
            let limit = text.parse().ok().filter(|_| !text.starts_with('+'));
            limit.filter(|limit| (1..=MAX_PAGE).contains(limit)).ok_or_else(|| is_no("limit", text))
        });
        given.all_right()?;
        let filter = DeadFilter { topic, reason, after, before };
        Ok(Self { filter, from, limit: limit.unwrap_or(DEFAULT_PAGE) })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PurgeQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let TopicPath(topic) = TopicPath::from_request_parts(parts, state).await?;
        let mut given = Given::new(parts, &["reason", "died_after", "died_before", "cursor"])?;
        let (reason, after, before) = filter(&mut given);
        let from = given.read("cursor", CURSOR, |text| text.parse().map_err(|_| is_no("cursor", text)));
        given.all_right()?;
        Ok(Self { filter: DeadFilter { topic, reason, after, before }, from })
    }
}

fn filter(given: &mut Given) -> (Option<String>, Option<Timestamp>, Option<Timestamp>) {
    let reason = given.read("reason", REASON, |text| {
        Some(text.to_owned()).filter(|text| is_reason(text)).ok_or_else(|| is_no("reason", text))
    });
    let mut time = |name| given.read(name, TIME, |text| parse_time(text).ok_or_else(|| is_no("time", text)));
    (reason, time("died_after"), time("died_before"))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use http::Request;
    use ringback_core::wire::Problem;
    use tower::ServiceExt as _;

    use super::*;

    async fn told(query: &str) -> Result<String, Problem> {
        let show = |query: DeadQuery| async move { format!("{query:?}") };
        let app = Router::new().route("/v1/topics/{topic}/dead", get(show));
        let request = Request::builder().uri(format!("/v1/topics/{query}")).body(Body::empty()).unwrap();
        let response = app.oneshot(request).await.unwrap();
        let good = response.status().is_success();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        if good {
            return Ok(String::from_utf8(body.to_vec()).unwrap());
        }
        Err(serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_query_may_say_nothing_or_all() {
        let text = told("a.b/dead").await.unwrap();
        assert!(text.contains("a.b") && text.contains("limit: 100") && text.contains("from: None"), "{text}");
        let query = "a.b/dead?reason=gone&died_after=1970-01-01T00:00:01Z&died_before=1970-01-01T00:00:02.0001Z\
                     &limit=7&cursor=1-00000000000000000000000a";
        let text = told(query).await.unwrap();
        for word in ["\"gone\"", "Timestamp(1000)", "Timestamp(2001)", "limit: 7", "at: 1"] {
            assert!(text.contains(word), "no {word} in {text}");
        }
    }

    #[tokio::test]
    async fn every_wrong_parameter_is_named() {
        let query = "t/dead?colour=1&reason=a%20b&died_after=yesterday&died_before=&cursor=x&limit=0&limit=1";
        let problem = told(query).await.unwrap_err();
        let names: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            (problem.status, names.join(" ")),
            (422, "colour limit reason died_after died_before cursor limit".to_owned())
        );
        assert_eq!(told("a%20b/dead").await.unwrap_err().errors[0].field, "topic");
        assert_eq!(told("t/dead?reason=").await.unwrap_err().errors[0].field, "reason");
        assert_eq!(told("t/dead?cursor=%ff").await.unwrap_err().errors[0].field, "cursor");
    }
}
