//! Tests that the limits that attributes state as numbers in the OpenAPI document are those of the parsers.

use ringback_core::flow::{MAX_FLOW, Rate};
use ringback_core::job::{JobId, MAX_TAGS, Topic};
use ringback_core::retry::{DEFAULT_JITTER, MAX_TIERS};
use ringback_core::store_types::{MAX_RATE, MAX_TOPIC_PAGE};
use ringback_wire::{
    DEFAULT_PAGE, DEFAULT_RATE, DEFAULT_REPLAY_RATE, MAX_PAGE, MAX_PULL, MAX_RECEIPTS, MAX_REPLAY_RATE,
};
use serde_json::{Value, json};

use super::document;
use crate::config::Config;
use crate::extract::MAX_ITEMS;

#[test]
fn the_limits_of_fields_are_those_of_the_parsers() {
    let schemas = document()["components"]["schemas"].take();
    for (pointer, limit) in [
        ("/RetryPolicy/properties/delays/maxItems", json!(MAX_TIERS)),
        ("/RetryPolicy/properties/max/maximum", json!(u32::MAX)),
        ("/ReserveRequest/properties/max/maximum", json!(MAX_PULL)),
        ("/ReviveRequest/properties/rate/maximum", json!(MAX_RATE)),
        ("/ReplayRequest/properties/rate/maximum", json!(MAX_REPLAY_RATE)),
        ("/JobRequest/properties/tags/maxItems", json!(MAX_TAGS)),
        ("/ScheduledJobRequest/properties/tags/maxItems", json!(MAX_TAGS)),
        ("/FinishAllRequest/properties/receipts/maxItems", json!(MAX_RECEIPTS)),
        ("/LimitsRequest/properties/burst/maximum", json!(MAX_FLOW)),
        ("/LimitsRequest/properties/in_flight/maximum", json!(MAX_FLOW)),
        ("/BatchRequest/maxItems", json!(MAX_ITEMS)),
    ] {
        assert_eq!(schemas.pointer(pointer), Some(&limit), "{pointer}");
    }
    for (schema, field, default) in [
        ("ReviveRequest", "rate", DEFAULT_RATE.to_string()),
        ("ReplayRequest", "rate", DEFAULT_REPLAY_RATE.to_string()),
        ("RetryPolicy", "jitter", DEFAULT_JITTER.to_string()),
    ] {
        let about = schemas[schema]["properties"][field]["description"].as_str().unwrap();
        assert!(about.contains(&format!("{default} by default")), "{schema}.{field}: {about}");
    }
}

#[test]
fn the_limits_of_pages_are_those_of_the_parsers() {
    assert_eq!(MAX_PAGE, MAX_TOPIC_PAGE);
    let document = document();
    for path in
        ["/v1/jobs", "/v1/topics", "/v1/topics/{topic}/dead", "/v1/history", "/v1/history/{topic}/{id}"]
    {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
        let limit = &parameters.iter().find(|parameter| parameter["name"] == "limit").unwrap();
        let expected = (&json!(1), &json!(MAX_PAGE), &json!(DEFAULT_PAGE));
        assert_eq!((&limit["schema"]["minimum"], &limit["schema"]["maximum"], &limit["example"]), expected);
    }
}

#[test]
fn the_lengths_of_names_are_those_of_the_parsers() {
    let schemas = document()["components"]["schemas"].take();
    let longest = |schema: &str| schemas[schema]["maxLength"].as_u64().unwrap() as usize;
    let (topic, id) = (longest("TopicName"), longest("JobId"));
    assert!("x".repeat(topic).parse::<Topic>().is_ok() && "x".repeat(topic + 1).parse::<Topic>().is_err());
    assert_eq!("4294967295/d".len(), longest("CallbackRate"));
    assert!("4294967295/d".parse::<Rate>().is_ok());
    assert!("x".repeat(id).parse::<JobId>().is_ok() && "x".repeat(id + 1).parse::<JobId>().is_err());
}

#[test]
fn the_server_is_where_the_api_listens_by_default() {
    let server = document()["servers"][0].take();
    let variable = |name: &str| server["variables"][name]["default"].as_str().unwrap().to_owned();
    let mut settings = Config::SETTINGS.iter().copied().flatten();
    let listen = settings.find(|setting| setting.name == "API_LISTEN").unwrap();
    assert_eq!(listen.default, format!("{}:{}", variable("host"), variable("port")));
    assert_eq!(server["url"], Value::from("http://{host}:{port}"));
}
