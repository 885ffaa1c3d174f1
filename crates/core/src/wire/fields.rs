//! An object taken apart field by field, each kept as the text it was written in. So all
//! wrong fields are found at once, each by its name, and a body passes through untouched.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::problem::FieldError;

/// No object of a submit has so many fields; more are not even looked at.
const MOST_FIELDS: usize = 64;

/// The fields of one JSON object, in the order written.
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

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
                    if fields.len() == MOST_FIELDS {
                        return Err(A::Error::custom(format_args!("more than {MOST_FIELDS} fields")));
                    }
                    fields.push((name, map.next_value()?));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Collects what is wrong, under the path of the object at hand.
#[derive(Default)]
pub(super) struct Mistakes(Vec<FieldError>);

impl Mistakes {
    pub(super) fn add(
        &mut self,
        field: impl Into<String>,
        detail: impl fmt::Display,
        allowed: impl fmt::Display,
    ) {
        self.0.push(FieldError {
            field: field.into(),
            detail: detail.to_string(),
            allowed: allowed.to_string(),
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_inner(self) -> Vec<FieldError> {
        self.0
    }
}

impl<'a> Fields<'a> {
    /// Fields that are not `known` or stand twice are mistakes.
    pub(super) fn check_names(&self, prefix: &str, known: &[&str], mistakes: &mut Mistakes) {
        for (i, (name, _)) in self.0.iter().enumerate() {
            let shown: String = name.chars().take(64).collect();
            if !known.contains(&name.as_ref()) {
                mistakes.add(format!("{prefix}{shown}"), "unknown field", known.join(", "));
            } else if self.0[..i].iter().any(|(n, _)| n == name) {
                mistakes.add(format!("{prefix}{shown}"), "given twice", "once");
            }
        }
    }

    /// A field, unless it is absent or null.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.raw(name).filter(|raw| raw.get() != "null")
    }

    /// A field, null included.
    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, raw)| *raw)
    }

    /// All fields, for hashing.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, raw)| (name.as_ref(), *raw))
    }
}

/// Reads a field's value as a type; a mistake says what is allowed.
pub(super) fn read<T: DeserializeOwned>(raw: &RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// A mistake for a value that is not even of the right type.
pub(super) fn wrong_type<T>(
    mistakes: &mut Mistakes,
    field: &str,
    raw: &RawValue,
    allowed: &str,
) -> Option<T> {
    mistakes.add(field, format!("{} is of the wrong type", shown(raw)), allowed);
    None
}

/// A value as written, cut to what an error message can carry.
pub(super) fn shown(raw: &RawValue) -> String {
    let text = raw.get();
    match text.char_indices().nth(80) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// How deeply a JSON text that is known to be valid is nested.
pub(super) fn depth(json: &str) -> usize {
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
