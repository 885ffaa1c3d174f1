//! Completes the OpenAPI document: merges the rules of `schema`, describes the dead-letter notice, and says
//! which bodies may be left out and that no call needs credentials.

use serde_json::{Value, json};

use crate::schema;

/// In the attributes of a handler: its request body may be left out.
const MAY_BE_LEFT_OUT: &str = "x-may-be-left-out";

/// The document with everything that the macros cannot say.
///
/// # Panics
/// If a rule names a schema or a property that does not exist.
pub(super) fn complete(mut document: Value) -> Value {
    document["security"] = json!([]);
    document["webhooks"] = json!({"dead_letter_notice": {"post": dead_letter_notice()}});
    for (name, rule) in schema::rules() {
        let pointer = match name.split_once('/') {
            Some((schema, property)) => format!("/components/schemas/{schema}/properties/{property}"),
            None => format!("/components/schemas/{name}"),
        };
        let schema = document.pointer_mut(&pointer);
        schema::merge(schema.unwrap_or_else(|| panic!("no schema {name}")), rule);
    }
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for operation in paths.flat_map(|(_, path)| path.as_object_mut().into_iter().flatten()) {
        complete_operation(operation.1);
    }
    document
}

/// The request to the URL of an `on_dead`.
fn dead_letter_notice() -> Value {
    json!({
        "tags": ["dead"], "operationId": "dead_letter_notice", "summary": "Dead-letter notice",
        "description": "Posted to the `on_dead` of a job that died, or to that of its topic's policy. It is a job of the topic `ringback.on-dead`, delivered and retried like any other.",
        "requestBody": {
            "required": true,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NoticeBody"}}},
        },
        "responses": {
            "2XX": {"description": "Received"},
            "4XX": {"description": "Not received: it is sent again later, except after 410"},
        },
    })
}

fn complete_operation(operation: &mut Value) {
    if let Some(body) = operation.get_mut("requestBody").and_then(Value::as_object_mut)
        && body.remove(MAY_BE_LEFT_OUT).is_some()
    {
        body.insert("required".to_owned(), false.into());
    }
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
    for parameter in parameters.into_iter().flatten() {
        // A parameter is left out, never null.
        let forms = parameter["schema"]["oneOf"].as_array().into_iter().flatten();
        let mut forms = forms.filter(|form| form["type"] != "null");
        if let (Some(form), None) = (forms.next().cloned(), forms.next()) {
            parameter["schema"] = form;
        }
    }
}
