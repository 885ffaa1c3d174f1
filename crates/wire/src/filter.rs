//! The fields of a filter of jobs, parsed and shown. Queries, bodies and flags of the command line have the same names.

use ringback_core::clock::Timestamp;
use ringback_core::destination::Destination;
use ringback_core::job::{JobId, Tags, Topic};
use ringback_core::state::State;
use ringback_core::store_types::{Filter, MAX_ERROR_TEXT, TimeRange};
use ringback_core::written_time::{ALLOWED_TIME, parse_time};
use serde::{Deserialize, Serialize};

use super::field_parsers::object::{Fields, Mistakes, read, shown};
use super::field_parsers::values::{REASON, is_reason};

const STATES: &str = "delayed, ready, reserved or dead; omit it for all of them";
const STATUS: &str = "a status code, 100 to 599";
const ERROR: &str =
    "a part of the error text, 1 to 128 characters, none of them a control character, such as timeout";
const ID_PREFIX: &str = "how ids begin: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ + = , -";

/// The fields of a filter, each with what is allowed.
pub const FILTER_FIELDS: [(&str, &str); 14] = [
    ("topic", Topic::ALLOWED),
    ("state", STATES),
    ("tag", Tags::ALLOWED_TAG),
    ("host", Destination::ALLOWED),
    ("reason", REASON),
    ("status", STATUS),
    ("error", ERROR),
    ("due_after", ALLOWED_TIME),
    ("due_before", ALLOWED_TIME),
    ("created_after", ALLOWED_TIME),
    ("created_before", ALLOWED_TIME),
    ("failed_after", ALLOWED_TIME),
    ("failed_before", ALLOWED_TIME),
    ("id_prefix", ID_PREFIX),
];

/// A value of a filter that is not allowed.
pub struct WrongValue {
    /// What is wrong with it.
    pub detail: String,
    /// What is allowed.
    pub allowed: String,
}

/// Sets a field of a filter from its text. A topic is set without a tenant.
///
/// # Errors
/// If there is no field with this name, or the text is not allowed.
pub fn set_filter_field(filter: &mut Filter, name: &str, text: &str) -> Result<(), WrongValue> {
    let allowed =
        FILTER_FIELDS.into_iter().find(|(known, _)| *known == name).map_or("", |(_, allowed)| allowed);
    let wrong = |detail: String| WrongValue { detail, allowed: allowed.to_owned() };
    let is_no = |name: &str| format!("{} is no {}", quoted(text), name.replace('_', " "));
    let plain = || wrong(is_no(name));
    let owned = |is_fine: bool| Some(text.to_owned()).filter(|_| is_fine).ok_or_else(plain);
    let time = || {
        parse_time(text).map_err(|error| WrongValue {
            detail: format!("{}: {error}", is_no("time")),
            allowed: error.allowed().to_owned(),
        })
    };
    let after = |range: TimeRange| Ok::<_, WrongValue>(TimeRange::new(Some(time()?), range.before()));
    let before = |range: TimeRange| Ok::<_, WrongValue>(TimeRange::new(range.after(), Some(time()?)));
    match name {
        "topic" => filter.topic = Some(text.parse().map_err(|_| plain())?),
        "state" => filter.state = Some(state(text).map_err(|why| why.map_or_else(plain, wrong))?),
        "tag" => filter.tag = Some(owned(Tags::is_tag(text))?),
        "host" => filter.host = Some(Destination::parse(text).map_err(|refused| wrong(refused.detail))?),
        "reason" => filter.reason = Some(owned(is_reason(text))?),
        "status" => filter.status = Some(status(text).ok_or_else(plain)?),
        "error" => filter.error = Some(owned(is_error_text(text))?),
        "due_after" => filter.due = after(filter.due)?,
        "due_before" => filter.due = before(filter.due)?,
        "created_after" => filter.created = after(filter.created)?,
        "created_before" => filter.created = before(filter.created)?,
        "failed_after" => filter.failed = after(filter.failed)?,
        "failed_before" => filter.failed = before(filter.failed)?,
        "id_prefix" => filter.id_prefix = Some(owned(is_start_of_id(text))?),
        _ => return Err(plain()),
    }
    Ok(())
}

/// Whether ids can begin with a text: it is an id itself, or `.` or `..`, which are not.
fn is_start_of_id(text: &str) -> bool {
    text.parse::<JobId>().is_ok() || [".", ".."].contains(&text)
}

/// A text for a message: in quotes, cut after 80 characters.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((cut, _)) => format!("{:?}", format!("{}…", &text[..cut])),
        None => format!("{text:?}"),
    }
}

/// The state with a name. The error says why it is refused if jobs in it have ended; `None` for an unknown name.
fn state(text: &str) -> Result<State, Option<String>> {
    match text.parse::<State>() {
        Ok(state) if state.is_terminal() => {
            Err(Some(format!("{text} jobs have ended and are neither listed nor exported")))
        }
        Ok(state) => Ok(state),
        Err(_) => Err(None),
    }
}

fn status(text: &str) -> Option<u16> {
    // `u16` would parse a sign too.
    let status = text.parse().ok().filter(|_| text.len() == 3);
    status.filter(|status| (100..=599).contains(status))
}

fn is_error_text(text: &str) -> bool {
    (1..=MAX_ERROR_TEXT).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// Parses a filter in a body. A topic has no tenant yet. Each wrong or unknown field adds a mistake.
pub(super) fn parse(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Filter {
    let names = FILTER_FIELDS.map(|(name, _)| name);
    fields.check_names("", &names, mistakes);
    let mut filter = Filter::default();
    for name in names {
        let Some(raw) = fields.get(name) else { continue };
        let text = match name {
            "status" => read::<u16>(raw).map(|status| status.to_string()),
            _ => read::<String>(raw),
        };
        let set = text.map(|text| set_filter_field(&mut filter, name, &text));
        match set {
            Some(Ok(())) => {}
            Some(Err(WrongValue { detail, allowed })) => mistakes.add(name, detail, allowed),
            None => {
                let allowed = FILTER_FIELDS.into_iter().find(|(known, _)| *known == name);
                let allowed = allowed.map_or("", |(_, allowed)| allowed);
                mistakes.add(name, format_args!("{} is of the wrong type", shown(raw)), allowed);
            }
        }
    }
    filter
}

/// A filter of jobs as answers show it, with the fields of a [`FilterFields`](crate::schema::FilterFields).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilterDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_prefix: Option<String>,
}

impl From<&Filter> for FilterDetails {
    fn from(filter: &Filter) -> Self {
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
        let filter = filter.clone();
        Self {
            topic: filter.topic.map(|topic| topic.to_string()),
            state: filter.state.map(|state| state.to_string()),
            tag: filter.tag,
            host: filter.host.map(|host| host.to_string()),
            reason: filter.reason,
            status: filter.status,
            error: filter.error,
            due_after: time(filter.due.after()),
            due_before: time(filter.due.before()),
            created_after: time(filter.created.after()),
            created_before: time(filter.created.before()),
            failed_after: time(filter.failed.after()),
            failed_before: time(filter.failed.before()),
            id_prefix: filter.id_prefix,
        }
    }
}
