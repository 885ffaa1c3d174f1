//! Parses the operations of an OpenAPI document, as far as the tests need them to make requests.

use std::collections::BTreeMap;

use serde_json::Value;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub(crate) struct Operation {
    pub(crate) method: String,
    /// The path, with the names of its parameters in braces.
    pub(crate) path: String,
    pub(crate) path_parameters: Vec<String>,
    /// Its query parameters and their schemas, all references resolved.
    pub(crate) query_parameters: Vec<(String, Value)>,
    /// Media types of the request's body, each with a good value and its schema, all references resolved.
    pub(crate) bodies: Vec<(String, Value)>,
    /// Whether the body may be left out.
    pub(crate) body_is_optional: bool,
    /// The answers it can give, by status.
    pub(crate) responses: BTreeMap<u16, Response>,
}

/// An answer as it is documented.
pub(crate) struct Response {
    /// The schema of each media type.
    pub(crate) content: BTreeMap<String, Value>,
    /// The names of its headers.
    pub(crate) headers: Vec<String>,
}

impl Operation {
    pub(crate) fn all(document: &Value) -> Vec<Self> {
        let paths = document["paths"].as_object().expect("paths");
        let items = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().expect("an item").iter();
            methods
                .filter(|(method, _)| METHODS.contains(&method.as_str()))
                .map(move |(method, operation)| Self::of(document, path, method, operation))
        });
        items.collect()
    }

    fn of(document: &Value, path: &str, method: &str, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let named = |place: &'static str| {
            let here = parameters.iter().filter(move |parameter| parameter["in"] == place);
            here.map(|parameter| (parameter["name"].as_str().expect("a name").to_owned(), parameter))
        };
        let query = named("query").map(|(name, parameter)| {
            // If the schema has no example, that of the parameter is used.
            let mut schema = resolved(document, &parameter["schema"], 0);
            if let Some(example) = parameter.get("example") {
                schema["example"] = example.clone();
            }
            (name, schema)
        });
        let content = operation["requestBody"]["content"].as_object();
        let bodies = content
            .into_iter()
            .flatten()
            .map(|(media_type, content)| (media_type.clone(), resolved(document, &content["schema"], 0)));
        let responses = operation["responses"].as_object().expect("responses").iter();
        let responses = responses.map(|(status, response)| {
            let content = response["content"].as_object().into_iter().flatten();
            let content =
                content.map(|(media_type, content)| (media_type.clone(), content["schema"].clone()));
            let headers = response["headers"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
            let response = Response { content: content.collect(), headers: headers.collect() };
            (status.parse().expect("a status"), response)
        });
        Self {
            method: method.to_uppercase(),
            path: path.to_owned(),
            path_parameters: named("path").map(|(name, _)| name).collect(),
            query_parameters: query.collect(),
            bodies: bodies.collect(),
            body_is_optional: operation["requestBody"]["required"] != true,
            responses: responses.collect(),
        }
    }

    /// Whether the operation has the parameter `include`, which adds the requests of jobs to the answer.
    pub(crate) fn includes_requests(&self) -> bool {
        self.query_parameters.iter().any(|(name, _)| name == "include")
    }

    /// Whether the operation is about ended jobs.
    pub(crate) fn is_of_history(&self) -> bool {
        self.path.starts_with("/v1/history")
    }

    /// Whether the path has a parameter of this name.
    pub(crate) fn is_of(&self, parameter: &str) -> bool {
        self.path_parameters.iter().any(|name| name == parameter)
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// A schema with each `$ref` replaced by its target; null beyond 30 levels.
fn resolved(document: &Value, schema: &Value, depth: usize) -> Value {
    if depth > 30 {
        return Value::Null;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target =
            document.pointer(reference.trim_start_matches('#')).expect("a reference leads somewhere");
        return resolved(document, target, depth + 1);
    }
    match schema {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                // An example is not a schema, whatever its fields are called.
                let is_example = name.starts_with("example");
                let value = if is_example { value.clone() } else { resolved(document, value, depth + 1) };
                (name.clone(), value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(|item| resolved(document, item, depth + 1)).collect(),
        other => other.clone(),
    }
}
