//! Objects and values of the OpenAPI document as page sections: requests with each field's meaning, answers with fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::api::EMPTY;
use super::{line, section_link, sentence, sentences};

/// The most sentences about a field that callers write.
const SENTENCES: usize = 2;
/// The same about an object other than a job.
const FEWER: usize = 1;

/// The schemas of the document.
pub(super) struct Schemas<'d> {
    all: &'d Map<String, Value>,
}

impl<'d> Schemas<'d> {
    pub(super) fn of(document: &'d Value) -> Self {
        Self { all: document["components"]["schemas"].as_object().expect("schemas") }
    }

    /// The properties of an object, with those of the objects that it extends.
    pub(super) fn properties(&self, name: &str) -> Map<String, Value> {
        self.properties_of(&self.all[name])
    }

    fn properties_of(&self, schema: &Value) -> Map<String, Value> {
        let mut found = Map::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            let part = reference(part).map_or(part, |name| &self.all[name]);
            found.extend(self.properties_of(part));
        }
        found.extend(schema["properties"].as_object().cloned().unwrap_or_default());
        found
    }

    /// The kind of a value, as text: a JSON type, a link to an object, or one of some values.
    pub(super) fn kind(&self, schema: &Value) -> String {
        if let Some(name) = reference(schema) {
            let schema = &self.all[name];
            let is_named = !self.properties_of(schema).is_empty() || is_value(name, schema);
            return if is_named { link(name, schema, self) } else { self.kind(schema) };
        }
        for form in ["oneOf", "anyOf", "allOf"] {
            if let Some(forms) = schema[form].as_array() {
                let kinds =
                    forms.iter().filter(|form| form["type"] != "null" && form.get("required").is_none());
                let kinds: BTreeSet<_> =
                    kinds.map(|form| self.kind(form)).filter(|kind| kind != "any").collect();
                if !kinds.is_empty() {
                    return kinds.into_iter().collect::<Vec<_>>().join(" or ");
                }
            }
        }
        if let Some(value) = schema.get("const") {
            return format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        if let Some(values) = schema["enum"].as_array() {
            let values = values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`"));
            return values.collect::<Vec<_>>().join(" ");
        }
        let types = match &schema["type"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(all) => all.iter().filter_map(Value::as_str).filter(|one| *one != "null").collect(),
            _ => vec!["any"],
        };
        let bounds = match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
            (Some(least), Some(most)) => format!(" {least} to {most}"),
            _ => String::new(),
        };
        match types.as_slice() {
            ["array"] => format!("list of {}", self.kind(&schema["items"])),
            types => format!("{}{bounds}", types.join(" or ")),
        }
    }
}

/// The name that a `$ref` refers to; `None` without one.
fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// Whether the page describes a value that is not an object: not an enum or cursor, and with a description of more
/// than seven words.
fn is_value(name: &str, schema: &Value) -> bool {
    let about = schema["description"].as_str().unwrap_or_default();
    !name.ends_with("Cursor") && schema["enum"].is_null() && about.split(' ').count() > 7
}

fn link(name: &str, schema: &Value, schemas: &Schemas<'_>) -> String {
    let anchor =
        if schemas.properties_of(schema).is_empty() { "values".to_owned() } else { name.to_lowercase() };
    format!("[{name}](#{anchor})")
}

/// Whether callers write the object.
fn is_request(name: &str) -> bool {
    let parts = ["ImportLine", "ImportedAttempt", "RetryPolicy", "Backoff", "TopicArchive", "SealedSecret"];
    name.ends_with("Request") || name.ends_with("Filter") || parts.contains(&name)
}

/// Adds the sections of all requests, answers and values.
pub(super) fn add(page: &mut String, schemas: &Schemas<'_>, document: &Value) {
    let used = used(document);
    let objects = schemas.all.iter().filter(|(_, schema)| !schemas.properties_of(schema).is_empty());
    let (requests, answers): (Vec<_>, Vec<_>) = objects.partition(|(name, _)| is_request(name));
    let (first, others): (Vec<_>, Vec<_>) = requests.into_iter().partition(|(name, _)| *name == "JobRequest");
    page.push_str("\n## Requests\n");
    let mut described = BTreeMap::new();
    for (name, schema) in first.into_iter().chain(others) {
        request(page, schemas, (name, schema), &mut described);
    }
    page.push_str("\n## Answers\n\nA field that has no value is absent or null.\n");
    for (name, schema) in answers {
        let fields = schemas.properties_of(schema);
        let fields: Vec<_> = fields.iter().map(|(field, schema)| answered(schemas, field, schema)).collect();
        write!(page, "\n### {name}\n\n{}\n", fields.join(", ")).expect("a text");
    }
    page.push_str("\n## Values\n\n");
    for (name, schema) in schemas.all.iter().filter(|(name, _)| used.contains(*name) && *name != EMPTY) {
        if schemas.properties_of(schema).is_empty() && is_value(name, schema) {
            let about = sentence(schema["description"].as_str().unwrap_or_default());
            writeln!(page, "- **{name}**: {}", sentences(&about, SENTENCES)).expect("a text");
        }
    }
}

/// A field of an answer, with its kind if that is a link or a set of values.
fn answered(schemas: &Schemas<'_>, field: &str, schema: &Value) -> String {
    let kind = schemas.kind(schema).replace("list of ", "");
    if kind.contains(['[', '`']) { format!("`{field}` ({kind})") } else { format!("`{field}`") }
}

/// Adds an object that callers write. An optional field with the same meaning in an earlier object is named with a
/// link to that object.
fn request(
    page: &mut String,
    schemas: &Schemas<'_>,
    (name, schema): (&str, &Value),
    described: &mut BTreeMap<(String, String), String>,
) {
    // The page of the command line refers to these.
    let most = if name == "JobRequest" || name.starts_with("Policy") { SENTENCES } else { FEWER };
    let about = sentence(schema["description"].as_str().unwrap_or_default());
    write!(page, "\n### {name}\n\n{}\n\n", sentences(&about, most)).expect("a text");
    let required: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut known = BTreeMap::<_, Vec<_>>::new();
    for (field, schema) in schemas.properties_of(schema) {
        let is_required = required.contains(&field.as_str());
        let about = meaning(&schema);
        let first = described.entry((field.clone(), about.clone())).or_insert_with(|| name.to_owned());
        if first != name && !is_required {
            known.entry(first.clone()).or_default().push(format!("`{field}`"));
            continue;
        }
        let required = if is_required { ", required" } else { "" };
        writeln!(
            page,
            "- `{field}` ({}{required}): {}",
            schemas.kind(&schema),
            sentences(&sentence(&about), most)
        )
        .expect("a text");
    }
    for (object, fields) in known {
        writeln!(page, "- As in {}: {}.", section_link(&object), fields.join(", ")).expect("a text");
    }
}

/// The description of a property, else of the first of its forms that has one, in one line; empty without one.
fn meaning(schema: &Value) -> String {
    let forms = ["oneOf", "anyOf"].iter().filter_map(|form| schema[form].as_array()).flatten();
    let mut found = [schema].into_iter().chain(forms).filter_map(|form| form["description"].as_str());
    line(found.next().unwrap_or_default())
}

/// The names that requests and parameters refer to, directly or not.
fn used(document: &Value) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let schemas = &document["components"]["schemas"];
    let paths = document["paths"].as_object().expect("paths").values();
    for operation in paths.filter_map(Value::as_object).flat_map(Map::values) {
        collect(&operation["parameters"], schemas, &mut used);
        collect(&operation["requestBody"], schemas, &mut used);
    }
    used
}

/// Adds the names that a value refers to, and recursively those in their schemas.
fn collect(value: &Value, schemas: &Value, used: &mut BTreeSet<String>) {
    if let Some(name) = reference(value)
        && used.insert(name.to_owned())
    {
        collect(&schemas[name], schemas, used);
    }
    match value {
        Value::Array(all) => all.iter().for_each(|one| collect(one, schemas, used)),
        Value::Object(all) => all.values().for_each(|one| collect(one, schemas, used)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
