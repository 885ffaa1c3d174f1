//! Checks that an answer agrees with the OpenAPI document: a valid body is accepted, any other is refused, and the
//! answer has the documented form.

use super::cases::Case;
use super::exceptions::may_be_refused;
use super::operation::Operation;
use super::schema::validate;
use super::wire::Answer;
use crate::prelude::*;

/// The statuses of a request that is refused for what it is.
const REFUSED: [u64; 4] = [400, 413, 415, 422];

/// No body that is shorter is refused for its size.
const LONG: usize = 4 * 1024;
/// Longer bodies are refused for their size, or not at all.
const TOO_LONG: usize = 100 * 1024;

/// Checks the answer to a case against the schemas and headers of its status and, if nothing else in the case is wrong,
/// that it fits the body of the case. Skips cases with a body that the operation does not read.
pub(crate) fn check(
    document: &Value,
    operation: &Operation,
    case: &Case,
    answer: &Answer,
) -> Result<(), String> {
    // A body that is not read resets the connection, which may cut off the answer.
    if operation.bodies.is_empty() && !case.body.is_empty() {
        return Ok(());
    }
    if let Some(schema) = operation.responses[&answer.status].content.get("application/json")
        && answer.content_type == "application/json"
    {
        check_json(document, schema, &answer.body)?;
    }
    if let Some(schema) = operation.responses[&answer.status].content.get("application/x-ndjson") {
        let mut lines = answer.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.try_for_each(|line| check_json(document, schema, line))?;
    }
    if answer.status >= 400 {
        let schema = &document["components"]["schemas"]["Problem"];
        check_json(document, schema, &answer.body)?;
    }
    let headers = &operation.responses[&answer.status].headers;
    if headers.iter().any(|name| name == "Location") && !answer.headers.iter().any(|name| name == "location")
    {
        return Err(format!("{} without a Location", answer.status));
    }
    if case.is_only_about_its_body && case.body.len() < TOO_LONG {
        check_body(document, operation, case, answer)
    } else {
        Ok(())
    }
}

fn check_json(document: &Value, schema: &Value, body: &[u8]) -> Result<(), String> {
    let body = serde_json::from_slice(body).map_err(|error| format!("no JSON: {error}"))?;
    validate(document, schema, &body).map_err(|why| format!("the answer is not as documented: {why}"))
}

/// Checks that the body of a case was accepted if it is valid, and refused if not.
fn check_body(document: &Value, operation: &Operation, case: &Case, answer: &Answer) -> Result<(), String> {
    let schema = |media_type: &str| operation.bodies.iter().find(|(name, _)| name == media_type);
    let Some((media_type, schema)) = case.media_type().and_then(schema) else { return Ok(()) };
    let reply: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    // A byte order mark before the text is ignored.
    let body = case.body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&case.body);
    let value = serde_json::from_slice::<Value>(body);
    let has_items = value.as_ref().is_ok_and(|value| value.as_array().is_some_and(|items| items.len() > 1));
    if media_type.ends_with("ndjson") || (schema["type"] == "array" && (answer.status == 200 || has_items)) {
        return check_items(document, media_type, schema, body, &reply);
    }
    let is_valid = match value {
        Ok(value) => validate(document, schema, &value),
        Err(_) if body.trim_ascii().is_empty() && operation.body_is_optional => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    agree(&is_valid, answer.status.into(), &reply, || case.body.clone())
}

/// Checks that each item of a body was accepted if it is valid, and refused if not. Skips answers without a result for
/// each item.
fn check_items(
    document: &Value,
    media_type: &str,
    schema: &Value,
    body: &[u8],
    reply: &Value,
) -> Result<(), String> {
    let items: Vec<Option<Value>> = if media_type.ends_with("ndjson") {
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        lines.map(|line| serde_json::from_slice(line).ok()).collect()
    } else {
        let items = serde_json::from_slice::<Vec<Value>>(body);
        items.unwrap_or_default().into_iter().map(Some).collect()
    };
    let schema = if media_type.ends_with("ndjson") { schema } else { &schema["items"] };
    let accepted = Value::from(201);
    for (n, item) in items.iter().enumerate() {
        let result = match (&reply["results"], &reply["problems"]) {
            (Value::Array(results), _) => &results[n],
            (_, Value::Array(problems)) => {
                problems.iter().find(|problem| problem["line"] == n + 1).unwrap_or(&Value::Null)
            }
            _ if items.len() > 1 => return Err(format!("no results of {} items: {reply}", items.len())),
            // The body is not a list.
            _ => return Ok(()),
        };
        let status = result.get("status").unwrap_or(&accepted).as_u64().expect("a status");
        let is_valid =
            item.as_ref().map_or(Err("no JSON".to_owned()), |item| validate(document, schema, item));
        let text = || item.as_ref().map(Value::to_string).unwrap_or_default();
        let agreed = agree(&is_valid, status, &result["problem"], || text().into_bytes());
        let shown = || text().chars().take(200).collect::<String>();
        agreed.map_err(|why| format!("item {n}, {}: {why}", shown()))?;
    }
    Ok(())
}

fn agree(
    is_valid: &Result<(), String>,
    status: u64,
    problem: &Value,
    body: impl FnOnce() -> Vec<u8>,
) -> Result<(), String> {
    match (is_valid, REFUSED.contains(&status)) {
        (Ok(()), true) if !is_beyond_the_schema(status, problem, &body()) => {
            Err(format!("{status}, though the body is valid by its schema: {problem}"))
        }
        (Err(why), false) => Err(format!("{status}, though the body is not valid by its schema: {why}")),
        _ => Ok(()),
    }
}

/// Whether every reason of a refusal is one that a schema cannot state.
fn is_beyond_the_schema(status: u64, problem: &Value, body: &[u8]) -> bool {
    if status == 413 {
        return body.len() > LONG;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let errors = problem["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_known = |error: &Value| {
        let (field, detail) = (error["field"].as_str()?, error["detail"].as_str()?);
        let value = body.pointer(&format!("/{}", field.replace('.', "/"))).unwrap_or(&Value::Null);
        Some(may_be_refused(field, value, detail))
    };
    !errors.is_empty() && errors.iter().all(|error| is_known(error) == Some(true))
}
