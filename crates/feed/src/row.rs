//! Turns a row of a database into the JSON of a submit, as a caller of the API would send it: checks the columns of a
//! page, and converts the values of a row. Also the hashes by which rows are remembered.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringback_core::clock::Timestamp;
use ringback_core::job::Topic;
use ringback_core::written_time::parse_time;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

use crate::source::{Page, Value};

/// The columns that are fields of a submit by the same name, and hold JSON.
const JSON_COLUMNS: [&str; 4] = ["headers", "context", "tags", "retry"];
/// The columns that are fields of a submit by the same name.
const PLAIN_COLUMNS: [&str; 8] = ["key", "url", "method", "timeout", "ttr", "expires", "on_dead", "on_done"];
/// The columns of an outbox that are not fields of a job. `seq` orders the rows.
pub(crate) const OUTBOX_COLUMNS: [&str; 4] = ["seq", "error", "loaded_at", "created_at"];
/// The largest row, in bytes. No job is nearly as large.
const MAX_ROW: usize = 4 * 1024 * 1024;

const NOT_UTF8: &str = "is not UTF-8";

/// Which part of a job a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Id,
    DueAt,
    Body,
    ContentType,
    Json(&'static str),
    Plain(&'static str),
    /// Nothing.
    Other,
}

/// The columns of a page.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    all: Vec<Column>,
    id: usize,
}

/// A row as a submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: String,
    /// When it is due; `None` for at once.
    pub(crate) due: Option<Timestamp>,
    pub(crate) json: Vec<u8>,
}

/// A row that is not a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadRow {
    pub(crate) id: String,
    pub(crate) why: String,
}

impl Columns {
    /// Checks the names of the columns of a page of jobs: `id` and `due_at` are required.
    ///
    /// # Errors
    /// A text that names the column that is missing, unknown or there twice.
    pub(crate) fn of_jobs(page: &Page) -> Result<Self, String> {
        Self::of(page, &["id", "due_at"], &[])
    }

    /// Checks the names of the columns of an outbox: `id`, `seq` and `error` are required.
    ///
    /// # Errors
    /// A text that names the column that is missing, unknown or there twice.
    pub(crate) fn of_outbox(page: &Page) -> Result<Self, String> {
        Self::of(page, &["id", "seq", "error"], &OUTBOX_COLUMNS)
    }

    /// Checks the names of the columns of rows that went: `id` must be the only one.
    ///
    /// # Errors
    /// A text that says so, with the columns that there are.
    pub(crate) fn of_ids(page: &Page) -> Result<Self, String> {
        match page.columns.as_slice() {
            [name] if name == "id" => Ok(Self { all: vec![Column::Id], id: 0 }),
            names => Err(format!("the query must yield one column, id; it yields {}", names.join(", "))),
        }
    }

    fn of(page: &Page, required: &[&str], others: &[&str]) -> Result<Self, String> {
        let mut all = Vec::with_capacity(page.columns.len());
        for (n, name) in page.columns.iter().enumerate() {
            let named = |known: &&&str| **known == name.as_str();
            let column = match name.as_str() {
                "id" => Column::Id,
                "due_at" => Column::DueAt,
                "body" => Column::Body,
                "content_type" => Column::ContentType,
                _ => match (JSON_COLUMNS.iter().find(named), PLAIN_COLUMNS.iter().find(named)) {
                    (Some(name), _) => Column::Json(name),
                    (None, Some(name)) => Column::Plain(name),
                    (None, None) if others.contains(&name.as_str()) => Column::Other,
                    (None, None) => return Err(unknown(name, others)),
                },
            };
            if page.columns[..n].contains(name) {
                return Err(format!("the query yields column {name} twice"));
            }
            all.push(column);
        }
        let missing = required.iter().find(|name| !page.columns.iter().any(|column| column == **name));
        if let Some(name) = missing {
            return Err(format!("the query yields no column {name}"));
        }
        let id = all.iter().position(|column| *column == Column::Id).unwrap_or_default();
        Ok(Self { all, id })
    }

    pub(crate) fn id<'a>(&self, row: &'a [Value]) -> &'a Value {
        &row[self.id]
    }

    /// The id of a row as text.
    ///
    /// # Errors
    /// If it is neither a text nor an integer, or is not UTF-8, or cannot be read.
    pub(crate) fn id_text(&self, row: &[Value]) -> Result<String, BadRow> {
        match self.id(row) {
            Value::Text(id) => Ok(id.clone()),
            Value::Int(id) => Ok(id.to_string()),
            Value::Unreadable(why) => Err(BadRow { id: String::new(), why: format!("id {why}") }),
            Value::NotUtf8(text) => {
                let id = String::from_utf8_lossy(text).into_owned();
                Err(BadRow { id, why: format!("id {NOT_UTF8}") })
            }
            Value::Null => Err(BadRow { id: String::new(), why: "id is null".to_owned() }),
            Value::Bool(_)
            | Value::Float(_)
            | Value::Json(_)
            | Value::Bytes(_)
            | Value::Time(_)
            | Value::List(_) => {
                Err(BadRow { id: String::new(), why: "id is neither a text nor an integer".to_owned() })
            }
        }
    }

    /// Turns a row into a submit. Columns that are null are left out.
    ///
    /// # Errors
    /// If the row is larger than [`MAX_ROW`], or a value has a type or form that its field cannot have.
    pub(crate) fn candidate(&self, topic: &Topic, row: &[Value]) -> Result<Candidate, BadRow> {
        let id = self.id_text(row)?;
        let size: usize = row.iter().map(Value::size).sum();
        let fields = if size > MAX_ROW {
            Err(format!("the row has {size} bytes, and at most {MAX_ROW} are read"))
        } else {
            self.fields(topic, &id, row)
        };
        match fields {
            Ok((due, json)) => Ok(Candidate { id, due, json }),
            Err(why) => Err(BadRow { id, why }),
        }
    }

    fn fields(&self, topic: &Topic, id: &str, row: &[Value]) -> Result<(Option<Timestamp>, Vec<u8>), String> {
        let (mut submit, mut due) = (Submit::default(), None);
        submit.text("topic", topic.name());
        submit.text("id", id);
        let is_named = |wanted| self.all.iter().zip(row).find(|(column, _)| **column == wanted);
        for (column, value) in self.all.iter().zip(row).filter(|(_, value)| **value != Value::Null) {
            match column {
                Column::Id | Column::ContentType | Column::Other => {}
                Column::DueAt => {
                    let at = due_at(value)?;
                    submit.text("at", &at.to_string());
                    due = Some(at);
                }
                Column::Body => {
                    let content_type = is_named(Column::ContentType).map(|(_, value)| value);
                    body(&mut submit, value, content_type)?;
                }
                Column::Json(name) => submit.json(name, &json(name, value)?),
                Column::Plain(name) => submit.json(name, &plain(name, value)?),
            }
        }
        Ok((due, submit.end()))
    }
}

fn unknown(name: &str, others: &[&str]) -> String {
    let known: Vec<_> = ["id", "due_at", "body", "content_type"]
        .into_iter()
        .chain(JSON_COLUMNS)
        .chain(PLAIN_COLUMNS)
        .chain(others.iter().copied())
        .collect();
    format!("the query yields column {name}, which jobs do not have; they have {}", known.join(", "))
}

/// A submit that is being written.
#[derive(Default)]
struct Submit(Vec<u8>);

impl Submit {
    fn json(&mut self, name: &str, json: &str) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.extend_from_slice(format!("\"{name}\":").as_bytes());
        self.0.extend_from_slice(json.as_bytes());
    }

    fn text(&mut self, name: &str, text: &str) {
        self.json(name, &Json::from(text).to_string());
    }

    fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

/// Converts a due time: a timestamp, a text by RFC 3339 or without a zone in UTC, or the seconds since 1970. Fails for
/// any other value.
fn due_at(value: &Value) -> Result<Timestamp, String> {
    const ALLOWED: &str = "it must be a timestamp, a text by RFC 3339 or such as 2026-11-20 10:30:00 in UTC, or the seconds since 1970";
    match value {
        Value::Time(at) => Ok(*at),
        Value::Int(seconds) => {
            let ms = u64::try_from(*seconds).ok().and_then(|seconds| seconds.checked_mul(1000));
            ms.map(Timestamp::from_millis).ok_or_else(|| format!("due_at is {seconds}: {ALLOWED}"))
        }
        Value::Text(text) => {
            let written = text.replacen(' ', "T", 1);
            let at = parse_time(&written).or_else(|_| parse_time(&format!("{written}Z")));
            at.map_err(|_| format!("due_at is \"{}\": {ALLOWED}", shortened(text)))
        }
        Value::Unreadable(why) => Err(format!("due_at {why}")),
        Value::NotUtf8(_) => Err(format!("due_at {NOT_UTF8}")),
        Value::Null
        | Value::Bool(_)
        | Value::Float(_)
        | Value::Json(_)
        | Value::Bytes(_)
        | Value::List(_) => Err(format!("due_at is not a time: {ALLOWED}")),
    }
}

/// Adds the body of a job: JSON, a text or bytes, unchanged; fails for any other value. A text without a content type
/// that is an object or an array counts as JSON. The default types are `text/plain` and `application/octet-stream`.
fn body(submit: &mut Submit, value: &Value, content_type: Option<&Value>) -> Result<(), String> {
    let content_type = match content_type {
        None | Some(Value::Null) => None,
        Some(Value::Text(name)) => Some(name.as_str()),
        Some(_) => return Err("content_type is not a string".to_owned()),
    };
    let (bytes, content_type) = match value {
        Value::Json(json) => {
            submit.json("body", json);
            return Ok(());
        }
        Value::Text(text) if content_type.is_none() && is_object_or_array(text) => {
            submit.json("body", text);
            return Ok(());
        }
        Value::Text(text) => (text.as_bytes(), content_type.unwrap_or("text/plain; charset=utf-8")),
        Value::Bytes(bytes) => (bytes.as_slice(), content_type.unwrap_or("application/octet-stream")),
        Value::NotUtf8(text) => (text.as_slice(), content_type.unwrap_or("application/octet-stream")),
        Value::Unreadable(why) => return Err(format!("body {why}")),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Time(_) | Value::List(_) => {
            return Err("body is neither JSON, text nor bytes".to_owned());
        }
    };
    submit.text("body_base64", &STANDARD.encode(bytes));
    submit.text("content_type", content_type);
    Ok(())
}

fn is_object_or_array(text: &str) -> bool {
    text.starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Converts a value that is JSON, a text with JSON, or a list of texts, whose nulls are left out, to JSON text. Fails
/// for any other value.
fn json(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::Json(json) => Ok(json.clone()),
        Value::Text(text) => match serde_json::from_str::<&RawValue>(text) {
            Ok(json) => Ok(json.get().to_owned()),
            Err(error) => Err(format!("{name} is not JSON: {error}")),
        },
        Value::List(texts) => Ok(Json::from(texts.iter().flatten().cloned().collect::<Vec<_>>()).to_string()),
        Value::NotUtf8(_) => Err(format!("{name} {NOT_UTF8}")),
        Value::Unreadable(why) => Err(format!("{name} {why}")),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Bytes(_) | Value::Time(_) => {
            Err(format!("{name} is not JSON"))
        }
    }
}

/// Converts a value that is a text, a finite number, a boolean or a time, to JSON text. Fails for any other value.
fn plain(name: &str, value: &Value) -> Result<String, String> {
    let json = match value {
        Value::Text(text) => Json::from(text.as_str()),
        Value::Int(key) if name == "key" => Json::from(key.to_string()),
        Value::Int(number) => Json::from(*number),
        Value::Float(number) if number.is_finite() => Json::from(*number),
        Value::Bool(is) => Json::from(*is),
        Value::Time(at) => Json::from(at.to_string()),
        Value::Unreadable(why) => return Err(format!("{name} {why}")),
        Value::NotUtf8(_) => return Err(format!("{name} {NOT_UTF8}")),
        Value::Null | Value::Float(_) | Value::Json(_) | Value::Bytes(_) | Value::List(_) => {
            return Err(format!("{name} is neither a text nor a number"));
        }
    };
    Ok(json.to_string())
}

fn shortened(text: &str) -> &str {
    ringback_core::limits::truncated(text, 64)
}

pub(crate) fn id_hash(id: &str) -> u128 {
    let hash: [u8; 32] = Sha256::digest(id).into();
    u128::from_be_bytes(std::array::from_fn(|n| hash[n]))
}

/// The hash of a submit, by which a change is noticed.
pub(crate) fn content_hash(json: &[u8]) -> u64 {
    let hash: [u8; 32] = Sha256::digest(json).into();
    u64::from_be_bytes(std::array::from_fn(|n| hash[n]))
}

/// A submit for people: its fields as they are written, sorted by name, with the values of headers masked.
pub(crate) fn shown(json: &[u8]) -> String {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(json).unwrap_or_default();
    let fields = fields.iter().map(|(name, raw)| {
        let without_values = |headers: Map<String, Json>| {
            Json::from_iter(headers.into_iter().map(|(name, _)| (name, Json::from("***")))).to_string()
        };
        let headers = (name == "headers").then(|| serde_json::from_str(raw.get()).ok().map(without_values));
        let value = headers.flatten().unwrap_or_else(|| raw.get().to_owned());
        format!("{}:{value}", Json::from(name.as_str()))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}
