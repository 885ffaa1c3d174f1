//! The topic and the query of calls about dead jobs.

use axum::extract::FromRequestParts;
use http::request::Parts;
use ringback_core::clock::Timestamp;
use ringback_core::contract::{DeadCursor, DeadFilter};
use ringback_core::job::Topic;
use ringback_core::wire::{REASON, is_reason, parse_time};

use super::parameters::{Parameters, is_no};
use crate::error::ApiError;
use crate::extract::path::TopicPath;
use crate::paging::PurgeCursor;

const TIME: &str = "a time by RFC 3339, such as 2026-11-20T09:30:00Z";
const CURSOR: &str =
    "the next of a previous answer for the same topic and filter; without it from the beginning";

/// A page of dead jobs.
#[derive(Debug)]
pub(crate) struct DeadQuery {
    pub(crate) filter: DeadFilter,
    pub(crate) from: Option<DeadCursor>,
    pub(crate) limit: usize,
}

impl<S: Send + Sync> FromRequestParts<S> for DeadQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let TopicPath(topic) = TopicPath::from_request_parts(parts, state).await?;
        let mut query = Parameters::new(parts, &["reason", "died_after", "died_before", "cursor", "limit"])?;
        let filter = filter(&mut query, topic);
        let from = query.parse("cursor", CURSOR);
        let limit = query.limit();
        query.finish()?;
        Ok(Self { filter, from, limit })
    }
}

/// Which dead jobs to purge, and where to continue.
#[derive(Debug)]
pub(crate) struct PurgeQuery {
    pub(crate) filter: DeadFilter,
    pub(crate) from: Option<PurgeCursor>,
}

impl<S: Send + Sync> FromRequestParts<S> for PurgeQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let TopicPath(topic) = TopicPath::from_request_parts(parts, state).await?;
        let mut query = Parameters::new(parts, &["reason", "died_after", "died_before", "cursor"])?;
        let filter = filter(&mut query, topic);
        let from = query.parse("cursor", CURSOR);
        query.finish()?;
        Ok(Self { filter, from })
    }
}

fn filter(query: &mut Parameters, topic: Topic) -> DeadFilter {
    let reason = query.read("reason", REASON, |text| {
        Some(text.to_owned()).filter(|text| is_reason(text)).ok_or_else(|| is_no("reason", text))
    });
    let mut time = |name| query.read(name, TIME, |text| parse_time(text).ok_or_else(|| is_no("time", text)));
    let (after, before): (Option<Timestamp>, Option<Timestamp>) = (time("died_after"), time("died_before"));
    DeadFilter { topic, reason, after, before }
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

    async fn extracted(query: &str) -> Result<String, Problem> {
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
    async fn all_parameters_are_optional() {
        let text = extracted("a.b/dead").await.unwrap();
        assert!(text.contains("a.b") && text.contains("limit: 100") && text.contains("from: None"), "{text}");
        let query = "a.b/dead?reason=gone&died_after=1970-01-01T00:00:01Z&died_before=1970-01-01T00:00:02.0001Z\
                     &limit=7&cursor=1-00000000000000000000000a";
        let text = extracted(query).await.unwrap();
        for part in ["\"gone\"", "Timestamp(1000)", "Timestamp(2001)", "limit: 7", "at: 1"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }

    #[tokio::test]
    async fn every_wrong_parameter_is_named() {
        let query = "t/dead?colour=1&reason=a%20b&died_after=yesterday&died_before=&cursor=x&limit=0&limit=1";
        let problem = extracted(query).await.unwrap_err();
        let names: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            (problem.status, names.join(" ")),
            (422, "colour limit reason died_after died_before cursor limit".to_owned())
        );
        assert_eq!(extracted("a%20b/dead").await.unwrap_err().errors[0].field, "topic");
        assert_eq!(extracted("t/dead?reason=").await.unwrap_err().errors[0].field, "reason");
        assert_eq!(extracted("t/dead?cursor=%ff").await.unwrap_err().errors[0].field, "cursor");
    }
}
