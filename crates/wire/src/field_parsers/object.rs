//! A JSON object split into its fields, each kept as the text it was written in. So all wrong fields are
//! found at once, and a body passes through unchanged.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use ringback_core::encoding::{json_error, visible};
use ringback_core::job::MAX_JOB;
use ringback_core::limits::name_start;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::problem::{FieldError, Problem};

/// The most fields of an object. More are refused without being read.
const MAX_FIELDS: usize = 64;

/// The longest field that is not a body, as it is written, in bytes.
const MAX_FIELD: usize = 64 * 1024;

/// The fields of one JSON object, in the order written.
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    if fields.len() == MAX_FIELDS {
                        return Err(A::Error::custom(format_args!("more than {MAX_FIELDS} fields")));
                    }
                    fields.push((name, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The name of a field.
#[derive(Deserialize)]
pub(crate) struct Name<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// The mistakes found so far.
#[derive(Default)]
pub struct Mistakes(Vec<FieldError>);

impl Mistakes {
    pub(crate) fn add(
        &mut self,
        field: impl Into<String>,
        detail: impl fmt::Display,
        allowed: impl fmt::Display,
    ) {
        self.0.push(FieldError {
            field: field.into(),
            detail: visible(detail.to_string()),
            allowed: allowed.to_string(),
        });
    }

    /// Adds the mistakes of an object that is the field `field` of this one.
    pub(crate) fn add_within(&mut self, field: &str, inner: Self) {
        let within = |error: FieldError| FieldError { field: format!("{field}.{}", error.field), ..error };
        self.0.extend(inner.0.into_iter().map(within));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value if there are no mistakes, otherwise a 422 problem that lists them.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Problem> {
        if self.0.is_empty() { Ok(value) } else { Err(self.into_problem()) }
    }

    /// A 422 problem that lists the mistakes.
    pub(crate) fn into_problem(self) -> Problem {
        Problem::fields(self.0)
    }
}

/// Splits the JSON of a request of at most [`MAX_JOB`] bytes.
///
/// # Errors
/// A 413 problem if it is longer, 400 if it is not a JSON object in UTF-8.
pub(crate) fn open(json: &[u8]) -> Result<Fields<'_>, Problem> {
    if json.len() > MAX_JOB {
        let detail = format!("the job has {} bytes; at most {MAX_JOB} are allowed", json.len());
        return Err(Problem::new(http::StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let text = std::str::from_utf8(json).map_err(|e| Problem::unreadable(format!("not UTF-8: {e}")))?;
    // The error would show the text, which may be a secret.
    if text.trim_ascii_start().starts_with('"') {
        return Err(Problem::unreadable("not a JSON object: it is a string".to_owned()));
    }
    serde_json::from_str(text)
        .map_err(|e| Problem::unreadable(format!("not a JSON object: {}", json_error(text, &e))))
}

/// [`open`] for a request that may be empty, which means an object without fields.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_or_empty(json: &[u8]) -> Result<Fields<'_>, Problem> {
    if json.trim_ascii().is_empty() { open(b"{}") } else { open(json) }
}

impl<'a> Fields<'a> {
    /// Adds a mistake for each field that is not `known` or occurs twice. Mistakes have `prefix` before the names.
    pub(crate) fn check_names(&self, prefix: &str, known: &[&str], mistakes: &mut Mistakes) {
        for (i, (name, _)) in self.0.iter().enumerate() {
            let path = || format!("{prefix}{}", name_start(name));
            if !known.contains(&name.as_ref()) {
                mistakes.add(path(), "unknown field", known.join(", "));
            } else if self.0[..i].iter().any(|(n, _)| n == name) {
                mistakes.add(path(), "given twice", "once");
            }
        }
    }

    /// Adds a mistake for each field that is longer than [`MAX_FIELD`] and not among the `long` ones. Returns whether
    /// there is no such field. If there is one, the caller parses no further, because that would take time.
    pub(crate) fn fit(&self, long: &[&str], mistakes: &mut Mistakes) -> bool {
        let is_over = |(name, raw): &&(Cow<'_, str>, &RawValue)| {
            raw.get().len() > MAX_FIELD && !long.contains(&name.as_ref())
        };
        let mut fit = true;
        for (name, raw) in self.0.iter().filter(is_over) {
            let detail = format_args!("it has {} bytes", raw.get().len());
            mistakes.add(name_start(name), detail, format_args!("at most {MAX_FIELD} bytes"));
            fit = false;
        }
        fit
    }

    /// A field, unless it is absent or null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.raw(name).filter(|raw| raw.get() != "null")
    }

    /// A field, also if it is null; `None` if it is absent.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, raw)| *raw)
    }

    /// All fields in the order written, for hashing.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, raw)| (name.as_ref(), *raw))
    }
}

/// Parses a value as a type; `None` if it is something else.
pub(crate) fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// Parses the text of a string; `None` if the value is not a string or its text cannot be parsed.
pub(crate) fn parse_text<T: FromStr>(raw: &RawValue) -> Option<T> {
    read::<String>(raw)?.parse().ok()
}

/// A value as it was written, cut after 80 characters, for an error message.
pub(crate) fn shown(raw: &RawValue) -> String {
    let text = raw.get();
    match text.char_indices().nth(80) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// The nesting depth of a valid JSON text; 0 without arrays and objects.
pub(crate) fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for b in json.bytes() {
        if in_string {
            match b {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match b {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_inside_strings_do_not_count_as_depth() {
        assert_eq!(depth("1"), 0);
        assert_eq!(depth(r#"{"a":[1,{"b":"[[[\"{{"}]}"#), 3);
    }
}
