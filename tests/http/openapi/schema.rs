//! A validator for the keywords of JSON Schema that the OpenAPI document uses. It fails on any other keyword.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use regex_automata::Input;
use regex_automata::dfa::Automaton as _;
use regex_automata::dfa::dense::DFA;
use regex_automata::util::syntax;
use serde_json::{Map, Value};

/// Keywords that say nothing about whether a value is valid.
const NOTES: [&str; 9] = [
    "$ref",
    "description",
    "title",
    "example",
    "examples",
    "default",
    "format",
    "contentEncoding",
    "deprecated",
];

/// Checks whether a value is valid by a schema of a document. The error says where it is not, and why.
pub(crate) fn validate(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else {
        return if *schema == Value::Bool(false) { Err("nothing is allowed".to_owned()) } else { Ok(()) };
    };
    if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
        let target = document.pointer(reference.trim_start_matches('#'));
        validate(document, target.unwrap_or_else(|| panic!("{reference} leads nowhere")), value)?;
    }
    for (keyword, rule) in keywords.iter().filter(|(keyword, _)| !NOTES.contains(&keyword.as_str())) {
        check(document, keyword, rule, keywords, value)?;
    }
    Ok(())
}

fn check(
    document: &Value,
    keyword: &str,
    rule: &Value,
    schema: &Map<String, Value>,
    value: &Value,
) -> Result<(), String> {
    let is_valid = |schema: &Value| validate(document, schema, value).is_ok();
    let all = || rule.as_array().expect("a list of schemas").iter();
    let limit = || rule.as_f64().expect("a number");
    let at_most = |count: Option<usize>| count.is_none_or(|count| count as f64 <= limit());
    let at_least = |count: Option<usize>| count.is_none_or(|count| count as f64 >= limit());
    let characters = || value.as_str().map(|text| text.chars().count());
    let items = || value.as_array().map(Vec::len);
    let fine = match keyword {
        "type" => match rule {
            Value::Array(types) => types.iter().any(|name| is_of_type(value, name)),
            name => is_of_type(value, name),
        },
        "enum" => all().any(|allowed| allowed == value),
        "const" => rule == value,
        "not" => !is_valid(rule),
        "allOf" => return all().try_for_each(|schema| validate(document, schema, value)),
        "anyOf" => all().any(is_valid),
        "oneOf" => return one_of(document, all(), value),
        "minimum" => value.as_f64().is_none_or(|number| number >= limit()),
        "maximum" => value.as_f64().is_none_or(|number| number <= limit()),
        "minLength" => at_least(characters()),
        "maxLength" => at_most(characters()),
        "pattern" => value.as_str().is_none_or(|text| matches(rule.as_str().expect("a pattern"), text)),
        "minItems" => at_least(items()),
        "maxItems" => at_most(items()),
        "uniqueItems" => value
            .as_array()
            .is_none_or(|items| items.iter().enumerate().all(|(n, item)| !items[..n].contains(item))),
        "items" => {
            let mut items = value.as_array().into_iter().flatten().enumerate();
            return items.try_for_each(|(n, item)| {
                validate(document, rule, item).map_err(|why| format!("[{n}]: {why}"))
            });
        }
        "maxProperties" => at_most(value.as_object().map(Map::len)),
        "required" => {
            all().all(|name| value.as_object().is_none_or(|o| o.contains_key(name.as_str().expect("a name"))))
        }
        "propertyNames" => {
            let mut names = value.as_object().into_iter().flatten();
            return names.try_for_each(|(name, _)| validate(document, rule, &name.as_str().into()));
        }
        "properties" | "additionalProperties" => {
            let mut fields = value.as_object().into_iter().flatten();
            return fields.try_for_each(|(name, field)| {
                let known = schema.get("properties").and_then(|known| known.get(name));
                let rule =
                    if keyword == "properties" { known } else { Some(rule).filter(|_| known.is_none()) };
                let checked = rule.map_or(Ok(()), |rule| validate(document, rule, field));
                checked.map_err(|why| format!("{name}: {why}"))
            });
        }
        other => panic!("the keyword {other} is not known"),
    };
    if fine { Ok(()) } else { Err(format!("{value} is against {keyword} {rule}")) }
}

fn one_of<'a>(
    document: &Value,
    schemas: impl Iterator<Item = &'a Value>,
    value: &Value,
) -> Result<(), String> {
    let results: Vec<_> = schemas.map(|schema| validate(document, schema, value)).collect();
    match results.iter().filter(|result| result.is_ok()).count() {
        1 => Ok(()),
        0 => Err(results.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("; or ")),
        count => Err(format!("{value} is valid by {count} schemas of a oneOf")),
    }
}

fn is_of_type(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        other => panic!("the type {other} is not known"),
    }
}

/// Whether a pattern matches a text anywhere, as in JSON Schema. Each pattern is compiled once a thread.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    thread_local! {
        static COMPILED: RefCell<HashMap<String, Rc<DFA<Vec<u32>>>>> = RefCell::default();
    }
    let compiled = COMPILED.with_borrow_mut(|compiled| {
        Rc::clone(compiled.entry(pattern.to_owned()).or_insert_with(|| Rc::new(compile(pattern))))
    });
    compiled.try_search_fwd(&Input::new(text)).expect("a search without limits").is_some()
}

fn compile(pattern: &str) -> DFA<Vec<u32>> {
    // Word boundaries are those of ASCII, as in ECMA-262.
    let pattern = pattern.replace("\\b", "(?-u:\\b)").replace("\\B", "(?-u:\\B)");
    let compiled = DFA::builder().syntax(syntax::Config::new()).build(&pattern);
    compiled.unwrap_or_else(|error| panic!("{pattern} is not a pattern: {error}"))
}
