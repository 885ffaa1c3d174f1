//! Bad requests made from an operation's own schema: wrong types, missing and unknown fields, huge values, broken
//! JSON, wrong content types, and bad values in paths and queries.

use super::edges::{edges, least, pairs};
use super::operation::Operation;
use crate::prelude::*;

/// How long lists become. What is longer may be refused for its size.
const LIST_BYTES: usize = 80 * 1024;

/// One request.
pub(crate) struct Case {
    pub(crate) method: String,
    /// The path and the query, encoded.
    pub(crate) target: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether everything else is as it should be.
    pub(crate) is_only_about_its_body: bool,
}

impl Case {
    /// The media type of the body; `None` without `content-type`.
    pub(crate) fn media_type(&self) -> Option<&str> {
        self.headers.iter().find(|(name, _)| *name == "content-type").map(|(_, value)| value.as_str())
    }

    /// A description, printed when the response is wrong.
    pub(crate) fn describe(&self) -> String {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(300)]).into_owned();
        let target: String = self.target.chars().take(200).collect();
        format!("{target} {:?} {} bytes {body:?}", self.headers, self.body.len())
    }
}

/// Valid values of path parameters: the names of an existing job, a receipt that holds one, and a bulk operation.
pub(crate) struct Names {
    pub(crate) topic: String,
    pub(crate) id: String,
    pub(crate) receipt: String,
    pub(crate) bulk: String,
}

impl Names {
    fn of(&self, parameter: &str) -> String {
        match parameter {
            "topic" => &self.topic,
            "id" => &self.id,
            "receipt" => &self.receipt,
            "bulk" => &self.bulk,
            // A parameter that this test does not know.
            _ => "t",
        }
        .to_owned()
    }
}

/// All requests to an operation: with bad bodies, path parameters and queries.
pub(crate) fn of(operation: &Operation, names: &Names) -> Vec<Case> {
    let named = |name: &str| names.of(name);
    let target = path(operation, named);
    let mut cases = bodies(operation, &target);
    for wrong in &operation.path_parameters {
        for value in url_values() {
            let target = path(operation, |name| if name == wrong { value.clone() } else { named(name) });
            cases.push(with_good_body(operation, target));
        }
    }
    let mut queries = vec!["colour=red".to_owned(), "&&=%&".to_owned(), "=".to_owned(), "%ff=%ff".to_owned()];
    for (name, schema) in &operation.query_parameters {
        let good = good(schema);
        let text = item(&good).as_str().map_or_else(|| good.to_string(), str::to_owned);
        queries.push(format!("{name}={}", text.replace(' ', "%20")));
        queries.extend(url_values().into_iter().map(|value| format!("{name}={value}")));
        queries.push(format!("{name}=1&{name}=2"));
        queries.push(name.clone());
    }
    cases.extend(queries.into_iter().map(|query| with_good_body(operation, format!("{target}?{query}"))));
    cases
}

/// Encoded values for a place in a URL, most of them bad.
fn url_values() -> Vec<String> {
    let short = "%00 %ff %20 %2e %2e%2e a%2Fb %E6%97%A5 %F0%9F%92%A5 -1 0 1e99 null [] \
        99999999999999999999 %7B%7D a%0D%0Ab '%22%3C ~ %25 NaN true ;a=b 0-0-0 1-1-1 dead";
    let long = ["a".repeat(64), "a".repeat(65), "a".repeat(129), "%41".repeat(2_000)];
    short.split(' ').map(str::to_owned).chain(long).collect()
}

fn path(operation: &Operation, value: impl Fn(&str) -> String) -> String {
    operation
        .path_parameters
        .iter()
        .fold(operation.path.clone(), |path, name| path.replace(&format!("{{{name}}}"), &value(name)))
}

fn with_good_body(operation: &Operation, target: String) -> Case {
    match operation.bodies.first() {
        Some((media_type, schema)) => {
            let body = written(media_type, schema, &good(schema));
            case(operation, target, vec![("content-type", media_type.clone())], body)
        }
        None => case(operation, target, Vec::new(), Vec::new()),
    }
}

fn case(operation: &Operation, target: String, headers: Vec<(&'static str, String)>, body: Vec<u8>) -> Case {
    Case { method: operation.method.clone(), target, headers, body, is_only_about_its_body: false }
}

/// Requests with bad bodies, with wrong headers, and with bodies where the operation has none.
fn bodies(operation: &Operation, target: &str) -> Vec<Case> {
    let with = |headers: &[(&'static str, &str)], body: Vec<u8>| {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        case(operation, target.to_owned(), headers, body)
    };
    let mut cases = vec![with(&[], Vec::new())];
    for text in broken() {
        cases.push(with(&[("content-type", "application/json")], text));
    }
    let json = operation
        .bodies
        .first()
        .map_or_else(|| b"{}".to_vec(), |(kind, schema)| written(kind, schema, &good(schema)));
    for headers in [
        &[][..],
        &[("content-type", "")],
        &[("content-type", "text/plain")],
        &[("content-type", "application/xml")],
        &[("content-type", "application/json; charset=latin1")],
        &[("content-type", "application/json;;;=")],
        &[("content-type", "/")],
        &[("content-type", "multipart/form-data; boundary=x")],
        &[("content-type", "application/x-www-form-urlencoded")],
        &[("content-type", "application/json"), ("content-encoding", "gzip")],
        &[("content-type", "application/json"), ("traceparent", "nonsense")],
        &[("content-type", "application/json"), ("accept", "text/html")],
    ] {
        cases.push(with(headers, json.clone()));
    }
    for (media_type, schema) in &operation.bodies {
        let kind = [("content-type", media_type.as_str())];
        let with =
            |kind: &[(&'static str, &str)], body| Case { is_only_about_its_body: true, ..with(kind, body) };
        for text in broken() {
            cases.push(with(&kind, text));
        }
        let good = good(schema);
        cases.push(with(&kind, Vec::new()));
        // Jobs of many at once are parsed as a single one is.
        let is_lines = media_type.ends_with("ndjson");
        let depth = if is_lines { 1 } else { 3 - usize::from(good.is_array()) };
        let mut values = variations(schema, &good, depth);
        if is_lines {
            values.iter_mut().filter(|value| !value.is_array()).for_each(|line| *line = json!([line.take()]));
        }
        // The answer has a result for each item, so items can share a request.
        let values = if is_lines || good.is_array() { in_few_lists(values) } else { values };
        for value in values {
            cases.push(with(&kind, written(media_type, schema, &value)));
        }
        // A field larger than any request for one job may be.
        let long = format!("\"{}\"", "x".repeat(1_200_000));
        for field in fields(schema) {
            let mut value = item(&good).clone();
            value[&field] = json!("too long");
            let body = String::from_utf8(written(media_type, schema, &value)).expect("JSON");
            cases.push(with(&kind, body.replace("\"too long\"", &long).into_bytes()));
        }
    }
    cases
}

/// Joins lists of one item into lists of up to [`LIST_BYTES`]. Other values stay as they are.
fn in_few_lists(values: Vec<Value>) -> Vec<Value> {
    let (mut lists, mut items, mut bytes) = (Vec::new(), Vec::new(), 0);
    for value in values {
        match value {
            Value::Array(mut one) if one.len() == 1 => {
                bytes += one[0].to_string().len();
                if bytes > LIST_BYTES {
                    lists.push(Value::Array(std::mem::take(&mut items)));
                    bytes = one[0].to_string().len();
                }
                items.append(&mut one);
            }
            other => lists.push(other),
        }
    }
    lists.push(Value::Array(items));
    lists
}

/// Bodies that are not JSON, and JSON that no operation accepts.
fn broken() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 20] = [
        b"{",
        b"[",
        b"nonsense",
        b"{\"a\"",
        b"{'a':1}",
        b"{\"a\":1,}",
        b"{} {}",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"\0",
        b"{\"a\":\"\xc3\x28\"}",
        b"{\"a\":01}",
        b"{\"a\":NaN}",
        b"{\"a\":1e999}",
        b"{\"a\":1,\"a\":2}",
        b"null",
        b"17",
        b"\"text\"",
        b"\n\n\n",
        b"[[[]]]",
    ];
    let mut broken: Vec<_> = texts.iter().map(|text| text.to_vec()).collect();
    broken.push(b"[".repeat(100_000));
    broken.push(b"{\"a\":".repeat(50_000));
    broken.push(b" ".repeat(5_000));
    broken
}

/// Values that almost no field accepts.
fn wrongs() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(0),
        json!(0.5),
        json!(1e308),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!("\u{0}"),
        json!("a\r\nb: c"),
        json!("日本 💥"),
        json!("9".repeat(400)),
        json!("x".repeat(70_000)),
        json!([]),
        json!({}),
        json!([[[]]]),
        json!({"a": {"b": null}}),
        json!(vec!["x"; 2_000]),
    ]
}

/// A valid value of a schema: its example, or one made by its type, without `wait`, so that no request waits.
pub(super) fn good(schema: &Value) -> Value {
    let schema = not_null(schema);
    let mut value = match (&schema["example"], schema["examples"].get(0)) {
        (Value::Null, None) => made(schema),
        (Value::Null, Some(example)) | (example, _) => example.clone(),
    };
    // No request should wait.
    if let Some(fields) = value.as_object_mut() {
        fields.remove("wait");
    }
    value
}

fn made(schema: &Value) -> Value {
    if let Some(first) = ["oneOf", "anyOf"].iter().find_map(|kind| schema[*kind].get(0)) {
        return good(first);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"].get(0)?.as_str());
    match kind {
        Some("array") => json!([good(&schema["items"])]),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("string") => schema["enum"].get(0).cloned().unwrap_or_else(|| json!("t")),
        _ => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let fields = required.map(|name| (name.to_owned(), good(&schema["properties"][name])));
            Value::Object(fields.collect())
        }
    }
}

/// The first item of a list, or the value itself.
fn item(good: &Value) -> &Value {
    good.get(0).unwrap_or(good)
}

/// The names of the fields of a schema and of all its forms, sorted.
fn fields(schema: &Value) -> Vec<String> {
    let here = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let forms = ["oneOf", "anyOf"].into_iter().flat_map(|kind| schema[kind].as_array().into_iter().flatten());
    let items = Some(&schema["items"]).filter(|items| items.is_object());
    let mut names: Vec<_> = here.chain(forms.chain(items).flat_map(fields)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Values with one thing changed from the good value, in every way, down to `depth` levels.
fn variations(schema: &Value, good: &Value, depth: usize) -> Vec<Value> {
    let mut all = wrongs();
    all.extend(edges(schema));
    if depth == 0 {
        return all;
    }
    let schema = not_null(schema);
    if let Some(first) = good.get(0) {
        let items = variations(&schema["items"], first, depth - 1);
        all.extend(items.into_iter().map(|item| json!([item])));
        all.push(json!([first, first, {"colour": "red"}]));
        return all;
    }
    let Some(object) = good.as_object() else { return all };
    all.extend(pairs(schema));
    let mut with_unknown = good.clone();
    with_unknown["colour"] = json!("red");
    all.push(with_unknown);
    all.push(good.clone());
    for name in object.keys() {
        let mut without = object.clone();
        without.remove(name);
        all.push(Value::Object(without));
    }
    for name in fields(schema) {
        let inner = &schema["properties"][&name];
        // No request should wait.
        let values = if name == "wait" { wrongs() } else { variations(inner, &self::good(inner), depth - 1) };
        // A field that the good value does not have may exclude one that it has.
        let base = if object.contains_key(&name) { good.clone() } else { least(schema) };
        all.extend(values.into_iter().map(|value| {
            let mut changed = base.clone();
            changed[&name] = value;
            changed
        }));
    }
    all
}

/// The only form of a schema that is not null, or the schema itself.
fn not_null(schema: &Value) -> &Value {
    let forms = schema["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    match forms.iter().filter(|form| form["type"] != "null").collect::<Vec<_>>()[..] {
        [form] => form,
        _ => schema,
    }
}

/// A value as a body of a media type. If the body is a list or lines, any other value becomes its only item.
fn written(media_type: &str, schema: &Value, value: &Value) -> Vec<u8> {
    let is_list = schema["type"] == "array";
    match (media_type.contains("ndjson"), value) {
        (true, Value::Array(items)) => {
            items.iter().map(|item| format!("{item}\n")).collect::<String>().into()
        }
        (true, value) => format!("{value}\n").into(),
        (false, value @ Value::Object(_)) if is_list => json!([value]).to_string().into(),
        (false, value) => value.to_string().into(),
    }
}
