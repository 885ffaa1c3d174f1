//! The query of the event stream: a topic or a job, and kinds of events.

use axum::extract::FromRequestParts;
use http::request::Parts;
use ringback_core::contract::EventName;
use ringback_core::job::JobId;

use super::parameters::{Parameters, is_no};
use crate::error::ApiError;
use crate::events::Filter;

/// Which events a caller wants.
#[derive(Debug)]
pub(crate) struct EventsQuery(pub(crate) Filter);

impl<S: Sync> FromRequestParts<S> for EventsQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut query = Parameters::new(parts, &["topic", "id", "kind"])?;
        let topic = query.topic();
        let id = query.parse("id", JobId::ALLOWED);
        if id.is_some() && !query.has("topic") {
            query.mistake("id", "given without topic", "only together with topic");
        }
        let allowed = EventName::ALL.map(EventName::name).join(", ");
        let allowed = format!("some of {allowed}, with commas between; without it all of them");
        let kinds = query.read("kind", allowed, kinds).unwrap_or_default();
        query.finish()?;
        Ok(Self(Filter { topic, id, kinds }))
    }
}

fn kinds(text: &str) -> Result<Vec<EventName>, String> {
    text.split(',').map(|name| EventName::from_name(name).ok_or_else(|| is_no("kind", name))).collect()
}

#[cfg(test)]
mod tests {
    use http::Request;
    use ringback_core::wire::Problem;

    use super::*;

    async fn extracted(query: &str) -> Result<Filter, Problem> {
        let request = Request::builder().uri(format!("/v1/events{query}")).body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        let query = EventsQuery::from_request_parts(&mut parts, &()).await;
        query.map(|EventsQuery(filter)| filter).map_err(|error| error.0)
    }

    async fn wrong(query: &str) -> String {
        let problem = extracted(query).await.unwrap_err();
        assert_eq!(problem.status, 422, "{query}: {problem:?}");
        problem.errors.into_iter().map(|error| error.field).collect::<Vec<_>>().join(" ")
    }

    #[tokio::test]
    async fn the_filter_is_everything_a_topic_a_job_or_kinds() {
        let all = extracted("").await.unwrap();
        assert!(all.topic.is_none() && all.id.is_none() && all.kinds.is_empty());
        let some = extracted("?topic=a&id=x~1&kind=done,dead").await.unwrap();
        assert_eq!(some.topic, Some("a".parse().unwrap()));
        assert_eq!(some.id, Some("x~1".parse().unwrap()));
        assert_eq!(some.kinds, [EventName::Done, EventName::Dead]);
    }

    #[tokio::test]
    async fn every_wrong_parameter_is_named() {
        assert_eq!(wrong("?id=a").await, "id");
        // An invalid topic counts as given.
        assert_eq!(wrong("?id=a&topic=b%20c").await, "topic");
        assert_eq!(wrong("?colour=red&kind=done,&topic=.&id=%2F").await, "colour topic id kind");
        for kinds in ["", ",", "Done", "done;dead", "done, dead", "reserved"] {
            assert_eq!(wrong(&format!("?kind={kinds}").replace(' ', "%20")).await, "kind", "{kinds}");
        }
        assert_eq!(wrong("?kind=done&kind=dead").await, "kind");
    }
}
