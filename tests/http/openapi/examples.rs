//! The examples in the OpenAPI document are valid by their schemas; requests have examples, and their texts have
//! patterns and limits.

use super::schema::{matches, validate};
use crate::prelude::*;

#[tokio::test]
async fn every_example_is_valid_by_its_schema() {
    let document = document().await;
    let mut found = 0;
    for_each_object(&document, "", &mut |place, object| {
        // An example is beside a schema, as in a parameter, or inside one.
        let schema = object.get("schema").unwrap_or(object);
        let several = object["examples"].as_array().into_iter().flatten();
        for example in object.get("example").into_iter().chain(several) {
            found += 1;
            validate(&document, schema, example).unwrap_or_else(|why| panic!("{place}: {why}"));
        }
    });
    assert!(found > 30, "{found} examples");
}

#[tokio::test]
async fn every_request_has_an_example() {
    let document = document().await;
    for_each_object(&document["paths"], "", &mut |place, object| {
        let content = object["requestBody"]["content"].as_object();
        for (media_type, content) in content.into_iter().flatten() {
            let reference = content["schema"]["$ref"].as_str().expect("a schema with a name");
            let mut schema = document.pointer(reference.trim_start_matches('#')).expect("a schema");
            if schema["type"] == "array" {
                let items = schema["items"]["$ref"].as_str().expect("items with a name");
                schema = document.pointer(items.trim_start_matches('#')).expect("a schema");
            }
            assert!(
                schema.get("example").or(schema.get("examples")).is_some(),
                "{place} {media_type} {reference}"
            );
        }
    });
}

#[tokio::test]
async fn every_pattern_can_be_compiled_and_every_text_of_a_request_has_a_limit() {
    let document = document().await;
    let mut found = 0;
    for_each_object(&document["components"]["schemas"], "", &mut |place, object| {
        if let Some(pattern) = object["pattern"].as_str() {
            found += 1;
            matches(pattern, "");
        }
        let name = place.split('/').nth(1).unwrap_or_default();
        // Any text may stand in a list of receipts.
        let is_request = name.ends_with("Request") && name != "FinishAllRequest";
        if is_request && object["type"] == "string" {
            assert!(object.get("maxLength").or(object.get("enum")).is_some(), "{place} has no limit");
        }
    });
    assert!(found > 15, "{found} patterns");
}

pub(super) async fn document() -> Value {
    let stack = Stack::options().in_one_process().store("embedded:data").start().await;
    stack.get("/openapi.json").await.json()
}

/// Calls `visit` with each object in a document and its place. Examples are left out.
fn for_each_object(value: &Value, place: &str, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => {
            visit(place, value);
            // A property may have the name `example`.
            let is_schema = !place.ends_with("/properties");
            for (name, field) in fields.iter().filter(|(name, _)| !(is_schema && name.starts_with("example")))
            {
                for_each_object(field, &format!("{place}/{name}"), visit);
            }
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, item)| for_each_object(item, &format!("{place}/{n}"), visit));
        }
        _ => {}
    }
}
