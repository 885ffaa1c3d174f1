//! The page of the HTTP API, from the OpenAPI document: the operations by tag, then the objects and values that they
//! name.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::api_schemas::{self, Schemas};
use super::{line, sentence, sentences};

const HEAD: &str = include_str!("heads/api.md");
/// What the head describes once for all operations.
const TENANT: &str = "ringback-tenant";
/// The errors that the head names for all operations.
const EVERYWHERE: [&str; 8] = ["400", "401", "403", "408", "413", "415", "422", "503"];
/// The parameters of a list that is read page by page.
const PAGE: [&str; 2] = ["cursor", "limit"];
/// The schema of a body that may be left out.
pub(super) const EMPTY: &str = "EmptyRequest";
/// The most sentences of the description of an operation.
const SENTENCES: usize = 2;

pub(super) fn page() -> String {
    let document: Value = serde_json::from_slice(&ringback_api::openapi::document()).expect("JSON");
    let schemas = Schemas::of(&document);
    let mut page = HEAD.to_owned();
    errors(&mut page, &document);
    for tag in document["tags"].as_array().expect("tags") {
        let operations = operations(&document, &tag["name"]);
        let name = text(&tag["name"]);
        write!(page, "\n## {name}\n\n{}\n", sentence(text(&tag["description"]))).expect("a text");
        for (method, path, operation) in operations {
            self::operation(&mut page, &schemas, (method, path), operation);
        }
    }
    api_schemas::add(&mut page, &schemas, &document);
    page
}

/// The operations and notices of a tag, each with its method and path; a notice has an empty path.
fn operations<'d>(document: &'d Value, tag: &Value) -> Vec<(&'d str, &'d str, &'d Value)> {
    let paths = document["paths"].as_object().expect("paths").iter();
    let all = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods").iter();
        methods.map(|(method, operation)| (method.as_str(), path.as_str(), operation))
    });
    let webhooks = document["webhooks"].as_object().expect("webhooks").iter();
    let notices = webhooks.map(|(_, hook)| ("post", "", &hook["post"]));
    let is_of_tag = |operation: &Value| operation["tags"].as_array().is_some_and(|tags| tags.contains(tag));
    all.chain(notices).filter(|(_, _, operation)| is_of_tag(operation)).collect()
}

/// Adds the table of error statuses. If descriptions differ, the last one counts.
fn errors(page: &mut String, document: &Value) {
    let mut meanings = Map::new();
    for methods in document["paths"].as_object().expect("paths").values() {
        for operation in methods.as_object().expect("methods").values() {
            for (status, response) in responses(operation).filter(|(status, _)| status.as_bytes()[0] >= b'4')
            {
                meanings.insert(status.clone(), response["description"].clone());
            }
        }
    }
    page.push_str("\n| status | meaning |\n|---|---|\n");
    let mut sorted: Vec<_> = meanings.into_iter().collect();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    for (status, meaning) in sorted {
        writeln!(page, "| {status} | {} |", sentence(text(&meaning))).expect("a text");
    }
}

/// Adds the section of an operation: path, caller, description, parameters, body and answers.
fn operation(page: &mut String, schemas: &Schemas<'_>, (method, path): (&str, &str), operation: &Value) {
    write!(page, "\n### {}\n\n", text(&operation["summary"])).expect("a text");
    if !path.is_empty() {
        write!(page, "`{} {path}`, {}\n\n", method.to_uppercase(), who(&operation["security"]))
            .expect("a text");
    }
    let about = sentence(operation["description"].as_str().unwrap_or_default());
    let about = sentences(&about, SENTENCES);
    if !about.is_empty() {
        write!(page, "{about}\n\n").expect("a text");
    }
    parameters(page, schemas, operation);
    let content = operation["requestBody"]["content"].as_object();
    let bodies = content.into_iter().flatten().map(|(media, body)| body_of(schemas, media, body));
    let bodies: Vec<_> = bodies.filter(|body| !body.contains(EMPTY)).collect();
    if !bodies.is_empty() {
        writeln!(page, "- Body: {}", bodies.join(", or ")).expect("a text");
    }
    let mut answers = answers(schemas, operation);
    let refusals: Vec<_> =
        responses(operation).map(|(status, _)| status.as_str()).filter(|s| s.as_bytes()[0] >= b'4').collect();
    answers.extend(
        refusals
            .into_iter()
            .filter(|status| !EVERYWHERE.contains(status) && !path.is_empty())
            .map(str::to_owned),
    );
    writeln!(page, "- Answers: {}", answers.join(", ")).expect("a text");
}

/// The answers of an operation that are not errors. If there are several, each has its meaning.
fn answers(schemas: &Schemas<'_>, operation: &Value) -> Vec<String> {
    let good: Vec<_> = responses(operation).filter(|(status, _)| status.as_bytes()[0] < b'4').collect();
    let is_only = good.len() == 1;
    let answer = |(status, response): &(&String, &Value)| {
        let content = response["content"].as_object().into_iter().flatten();
        let bodies: Vec<_> = content.map(|(media, body)| body_of(schemas, media, body)).collect();
        let body = if bodies.is_empty() { String::new() } else { format!(" {}", bodies.join(" or ")) };
        let meaning =
            if is_only { String::new() } else { format!(" ({})", line(text(&response["description"]))) };
        format!("{status}{body}{meaning}")
    };
    good.iter().map(answer).collect()
}

/// The responses of an operation, by status.
fn responses(operation: &Value) -> impl Iterator<Item = (&String, &Value)> {
    operation["responses"].as_object().into_iter().flatten()
}

/// The caller that an operation needs: the root key, a scope, or no key.
fn who(security: &Value) -> String {
    match security[0]["key"][0].as_str() {
        Some("root") => "root key".to_owned(),
        Some(scope) => format!("scope `{scope}`"),
        None => "without a key".to_owned(),
    }
}

/// The schema of a body, with its media type unless that is JSON.
fn body_of(schemas: &Schemas<'_>, media: &str, body: &Value) -> String {
    let kind = body.get("schema").map(|schema| schemas.kind(schema)).filter(|kind| kind != "object");
    match (media, kind) {
        ("application/json", Some(kind)) => kind,
        (media, Some(kind)) => format!("`{media}` of {kind}"),
        (media, None) => format!("`{media}`"),
    }
}

/// Adds the parameters in the query and in headers. Those in the path are left out, because their names explain them.
fn parameters(page: &mut String, schemas: &Schemas<'_>, operation: &Value) {
    let all = operation["parameters"].as_array().into_iter().flatten();
    let all: Vec<_> = all.filter(|one| one["in"] != "path" && one["name"] != TENANT).collect();
    let filter = schemas.properties("JobFilter");
    let is_filter = |one: &Value| filter.contains_key(text(&one["name"]));
    let has_filter = all.iter().filter(|one| is_filter(one)).count() > 10;
    // What they mean is at the top of the page.
    let is_of_page = |one: &Value| PAGE.contains(&text(&one["name"]));
    let is_list = all.iter().filter(|one| is_of_page(one)).count() == PAGE.len();
    for one in all.iter().filter(|one| !(has_filter && is_filter(one) || is_list && is_of_page(one))) {
        let about = one["description"].as_str().unwrap_or_default();
        let place = if one["in"] == "header" { "header, " } else { "" };
        let required = if one["required"] == true { "required, " } else { "" };
        let (name, kind) = (text(&one["name"]), schemas.kind(&one["schema"]));
        writeln!(page, "- `{name}` ({place}{required}{kind}): {}", sentence(about)).expect("a text");
    }
    if is_list {
        page.push_str("- `cursor`, `limit`\n");
    }
    if has_filter {
        page.push_str("- The fields of [JobFilter](#jobfilter), each as a parameter.\n");
    }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
