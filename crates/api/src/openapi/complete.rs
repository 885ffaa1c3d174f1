//! Completes the OpenAPI document: describes the notices, and says which bodies may be left out and what callers need.

use ringback_core::access::{TENANT_HEADER, TENANT_HEADER_ALL, TENANT_HEADER_NONE};
use serde_json::{Value, json};

use crate::error::MEDIA_TYPE;
use crate::operation::{Need, Operation, Operations};

/// In the attributes of a handler: its request body may be left out.
const MAY_BE_LEFT_OUT: &str = "x-may-be-left-out";
const ON_DEAD: &str = "Posted to the `on_dead` of a job that died, or to that of its topic's policy. It is a job of the topic `ringback.on-dead`, delivered and retried like any other.";
const ON_DONE: &str = "Posted to the `on_done` of a job whose receiver has accepted it, or to that of its topic's policy. It is a job of the topic `ringback.on-done`, delivered and retried like any other.";

/// Adds what the macros cannot say: security, notices, audited operations, refusals, and which bodies are optional.
pub(super) fn complete(mut document: Value, operations: &Operations) -> Value {
    document["components"]["securitySchemes"] = json!({"key": {
        "type": "http", "scheme": "bearer", "bearerFormat": "rbk_…",
        "description": "A key of POST /v1/keys, or the root key. Needed where RINGBACK_ROOT_KEY is set.",
    }});
    document["security"] = json!([{"key": []}, {}]);
    document["webhooks"] = json!({
        "dead_letter_notice": {"post": notice("dead", "dead_letter_notice", "Dead-letter notice", ON_DEAD)},
        "success_notice": {"post": notice("jobs", "success_notice", "Notice of a success", ON_DONE)},
    });
    document["components"]["schemas"]["AuditLogOperation"]["enum"] = operations.audited().into();
    for operation in operations.iter() {
        let method = operation.method.as_str().to_ascii_lowercase();
        let Some(described) = document["paths"][&*operation.path].get_mut(method) else { continue };
        complete_operation(described);
        described["security"] = security(operation.need);
        if operation.need != Need::Nothing {
            refusals(described, operation);
        }
    }
    document
}

/// The security requirement of an operation. Its empty alternative is an API without a root key.
fn security(need: Need) -> Value {
    match need {
        Need::Nothing => json!([]),
        Need::Scope(scope) => json!([{"key": [scope.to_string()]}, {}]),
        Need::Root => json!([{"key": ["root"]}, {}]),
    }
}

fn notice(tag: &str, id: &str, summary: &str, description: &str) -> Value {
    json!({
        "tags": [tag], "operationId": id, "summary": summary, "description": description,
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

/// Adds to an operation the answers 401 and 403, and the header by which an operator chooses a tenant.
fn refusals(described: &mut Value, operation: &Operation) {
    let problem = |meaning: &str| {
        let schema = json!({"$ref": "#/components/schemas/Problem"});
        json!({"description": meaning, "content": {MEDIA_TYPE: {"schema": schema}}})
    };
    described["responses"]["401"] = problem("A key is needed, and there is none, or it is not valid");
    described["responses"]["403"] = problem(
        "The key does not allow this; or there is no root key, and the request names another host or is of another site",
    );
    let or_all = if operation.takes_all_tenants() {
        format!(", or `{TENANT_HEADER_ALL}` for those of all tenants, each with its tenant")
    } else {
        String::new()
    };
    let tenant = json!({
        "name": TENANT_HEADER, "in": "header", "required": false,
        "schema": {"type": "string"},
        "description": format!(
            "With the root key: the tenant whose topics and jobs the call is about, or `{TENANT_HEADER_NONE}` for those of no tenant{or_all}"
        ),
    });
    match described["parameters"].as_array_mut() {
        Some(parameters) => parameters.push(tenant),
        None => described["parameters"] = json!([tenant]),
    }
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
