//! Tests of reading queries: each with all of its parameters, with none, and with every mistake.

use http::Request;
use ringback_core::job::TenantScope;
use ringback_core::state::State;
use ringback_wire::{FilterDetails, Problem};

use super::*;

async fn read<T: FromQuery>(query: &str) -> Result<T, Problem> {
    let (mut parts, ()) = Request::builder().uri(format!("/{query}")).body(()).unwrap().into_parts();
    Query::from_request_parts(&mut parts, &()).await.map(|Query(read)| read).map_err(|error| error.0)
}

async fn refused<T: FromQuery>(query: &str) -> Problem {
    let Err(problem) = read::<T>(query).await else { panic!("{query} is valid") };
    problem
}

/// The fields that are wrong in a query, which must be refused with 422, separated by spaces.
async fn wrong<T: FromQuery>(query: &str) -> String {
    let problem = refused::<T>(query).await;
    assert_eq!(problem.status, 422, "{query}: {problem:?}");
    problem.errors.into_iter().map(|error| error.field).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn all_parameters_are_optional() {
    let query: PageQuery = read("").await.unwrap();
    // A list shows the jobs without a tenant if none is chosen.
    let own = Filter { scope: TenantScope::One(None), ..Filter::default() };
    assert_eq!((query.filter, query.from, query.limit), (own.clone(), None, 100));
    assert_eq!(query.include, Include::Nothing);
    let query: PageQuery = read("?topic=a.b&state=dead&limit=1000&cursor=0-1f-2").await.unwrap();
    let filter = Filter { topic: Some("a.b".parse().unwrap()), state: Some(State::Dead), ..own };
    assert_eq!((query.filter, query.limit), (filter, 1000));
    assert_eq!(query.from.unwrap().to_string(), "0-1f-2");
    let all: events::Filter = read("").await.unwrap();
    assert!(all.topic.is_none() && all.id.is_none() && all.kinds.is_empty());
    let some: events::Filter = read("?topic=a&id=x~1&kind=done,dead").await.unwrap();
    assert_eq!((some.topic, some.id), (Some("a".parse().unwrap()), Some("x~1".parse().unwrap())));
    assert_eq!(some.kinds, [EventName::Done, EventName::Dead]);
}

#[tokio::test]
async fn the_parameters_of_dead_jobs_are_optional_too() {
    let topic: Topic = "t".parse().unwrap();
    let query: DeadPageQuery = read("").await.unwrap();
    let filter = DeadFilter { topic: topic.clone(), reason: None, after: None, before: None };
    assert_eq!((query.filter.of(topic.clone()), query.from, query.limit), (filter, None, 100));
    let times = "died_after=1970-01-01T00:00:01Z&died_before=1970-01-01T00:00:02.0001Z";
    let text = format!("?reason=gone&{times}&limit=7&cursor=1-00000000000000000000000a");
    let query: DeadPageQuery = read(&text).await.unwrap();
    assert_eq!((query.from.unwrap().to_string(), query.limit), ("1-00000000000000000000000a".to_owned(), 7));
    let filter = query.filter.of(topic);
    let times = (filter.after.unwrap(), filter.before.unwrap());
    assert_eq!(filter.reason.as_deref(), Some("gone"));
    assert_eq!(times, (Timestamp::from_millis(1000), Timestamp::from_millis(2001)));
}

#[tokio::test]
async fn every_wrong_parameter_is_named() {
    let query = "?colour=red&topic=a%20b&state=x&cursor=y&limit=0&limit=1&";
    assert_eq!(wrong::<PageQuery>(query).await, "colour limit topic state cursor limit");
    let problem = refused::<PageQuery>(query).await;
    let names = FILTER_FIELDS.map(|(name, _)| name).join(", ");
    assert_eq!(problem.errors[0].allowed, format!("{names}, cursor, limit, include"));
    for limit in ["", "0", "1001", "-1", "+5", "ten", "1.5", "99999999999999999999"] {
        assert_eq!(wrong::<PageQuery>(&format!("?limit={limit}")).await, "limit", "{limit}");
    }
    assert_eq!(wrong::<PageQuery>("?topic=").await, "topic");
    assert_eq!(wrong::<PageQuery>("?cursor=%ff").await, "cursor");
    let query = "?colour=1&reason=a%20b&died_after=yesterday&died_before=&cursor=x&limit=0&limit=1";
    let names = "colour limit reason died_after died_before cursor limit";
    assert_eq!(wrong::<DeadPageQuery>(query).await, names);
    assert_eq!(wrong::<DeadPageQuery>("?reason=").await, "reason");
    assert_eq!(wrong::<DeadPageQuery>("?cursor=%ff").await, "cursor");
    assert_eq!(wrong::<PurgeQuery>("?limit=1").await, "limit");
    assert_eq!(wrong::<events::Filter>("?id=a").await, "id");
    // An invalid topic counts as given.
    assert_eq!(wrong::<events::Filter>("?id=a&topic=b%20c").await, "topic");
    let query = "?colour=red&kind=done,&topic=.&id=%2F";
    assert_eq!(wrong::<events::Filter>(query).await, "colour topic id kind");
    for include in ["", "Request", "request,request", "attempts", "request&include=request"] {
        assert_eq!(wrong::<Include>(&format!("?include={include}")).await, "include", "{include}");
        assert_eq!(wrong::<DeadPageQuery>(&format!("?include={include}")).await, "include", "{include}");
    }
    assert_eq!(read::<PageQuery>("?include=request").await.unwrap().include, Include::Request);
    for kinds in
        ["", ",", "Done", "done;dead", "done,%20dead", "reserved", "done&kind=dead", "done,dead,done"]
    {
        assert_eq!(wrong::<events::Filter>(&format!("?kind={kinds}")).await, "kind", "{kinds}");
    }
}

#[tokio::test]
async fn each_field_of_a_filter_is_read_and_a_wrong_one_is_named() {
    let query = "?topic=a&state=dead&tag=customer:42&host=H:8080&reason=gone&status=503&error=timed%20out&due_after=1970-01-01T00:00:01Z&due_before=1970-01-01T00:00:02Z&created_after=1970-01-01T00:00:03Z&created_before=1970-01-01T00:00:04Z&failed_after=1970-01-01T00:00:05Z&failed_before=1970-01-01T00:00:06Z&id_prefix=a";
    let filter: Filter = read(query).await.unwrap();
    let shown = serde_json::to_value(FilterDetails::from(&filter)).unwrap();
    assert_eq!(shown.as_object().unwrap().len(), FILTER_FIELDS.len(), "{shown}");
    for (name, _) in FILTER_FIELDS {
        assert_eq!(wrong::<Filter>(&format!("?{name}=%00")).await, name);
    }
    let problem = refused::<Filter>("?due_before=2026-11-20T09:30").await;
    assert!(problem.errors[0].allowed.starts_with("an offset"), "{problem:?}");
}

#[tokio::test]
async fn ended_jobs_cannot_be_listed_and_the_message_says_so() {
    for (state, says_so) in [("done", true), ("cancelled", true), ("Dead", false), ("", false)] {
        let problem = refused::<Filter>(&format!("?state={state}")).await;
        assert_eq!(problem.errors[0].detail.contains("have ended"), says_so, "{problem:?}");
        assert!(problem.errors[0].allowed.starts_with("delayed, ready, reserved or dead"), "{problem:?}");
    }
}

#[tokio::test]
async fn a_flood_of_parameters_is_not_answered_one_by_one() {
    assert_eq!(refused::<Filter>(&format!("?{}", "a&".repeat(65))).await.status, 400);
}

#[tokio::test]
async fn a_plus_that_became_a_space_is_named() {
    let detail = async |query: &str| refused::<PageQuery>(query).await.errors[0].detail.clone();
    for query in [
        "?due_before=2026-11-28T10:00:00+01:00",
        "?due_after=2026-11-28T10:00:00+01:00",
        "?topic=a+b",
        "?limit=+5",
        "?cursor=a+b",
    ] {
        assert!(detail(query).await.contains("%2B"), "{query}: {}", detail(query).await);
    }
    assert!(!detail("?due_before=tomorrow%20+").await.is_empty());
    assert!(!detail("?limit=x").await.contains("%2B"));
    assert!(read::<PageQuery>("?due_before=2026-11-28T10:00:00%2B01:00").await.is_ok());
}
