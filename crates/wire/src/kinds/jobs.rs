//! The kinds of the fields of jobs and of policies of topics.

use std::time::Duration;

use ringback_core::job::{
    Callback, CallbackMethod, Context, Expires, Headers, JobId, MAX_AHEAD, MAX_CONTEXT, MAX_HEADERS,
    MAX_TAGS, MAX_TIMEOUT, MIN_TIMEOUT, OrderKey, Tags, Topic,
};
use ringback_core::retry::RetryPolicy as Retry;
use ringback_core::state::State;
use ringback_core::written_time::parse_time;

use super::{kinds, list, valid, within, worded};
use crate::field_parsers::object::{Fields, Mistakes, parse_text, read, shown};
use crate::field_parsers::retry::retry;
use crate::field_parsers::values::{duration, entries, url};
use crate::first_items::FirstItems;
use crate::schema::{
    CallbackUrl, ContextText, Expiry, HeadersText, JobIdText, OrderKeyText, PendingState, RetryPolicy,
    TagText, Timeout, TopicName,
};

/// The shortest time after which a job expires.
const MIN_EXPIRES: Duration = Duration::from_millis(1);
/// When a job can expire.
pub(crate) const EXPIRES: &str =
    "how long after it was first due, such as \"30m\" or 1800, or a time after it is due (RFC 3339)";

kinds! {
    TopicName: Topic = worded("is not a topic", Topic::ALLOWED, parse_text);
    JobIdText: JobId = worded("is not an id", JobId::ALLOWED, parse_text);
    OrderKeyText: OrderKey = worded("is not a key", OrderKey::ALLOWED, parse_text);
    CallbackUrl: Callback = |fields, name, _, mistakes| url(fields, name, mistakes);
    CallbackMethod: Self = worded("is not a method", CallbackMethod::ALLOWED, parse_text);
    HeadersText: Headers = |fields, name, _, mistakes| {
        entries::<MAX_HEADERS, _>(fields, name, Headers::parse, Headers::ALLOWED, mistakes)
    };
    ContextText: Context = |fields, name, _, mistakes| {
        entries::<MAX_CONTEXT, _>(fields, name, Context::parse, Context::ALLOWED, mistakes)
    };
    RetryPolicy: Retry = |fields, _, _, mistakes| retry(fields, mistakes);
    Timeout: Duration = within("is not a timeout", MIN_TIMEOUT..=MAX_TIMEOUT, "100 ms to 10 min");
    Expiry: Expires = |fields, _, _, mistakes| expires(fields, mistakes);
    Tags: Self = |fields, _, _, mistakes| tags(fields, mistakes),
        as list::<TagText>().max_items(Some(MAX_TAGS)).unique_items(true), of TagText;
    PendingState: State = valid(|raw| parse_text(raw).filter(|state: &State| !state.is_terminal()));
}

/// The field `expires`, a duration from the first due time, or a time; `None` if missing, or wrong, adding a mistake.
fn expires(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Expires> {
    let raw = fields.get("expires")?;
    let after = |duration| (MIN_EXPIRES..=MAX_AHEAD).contains(&duration).then_some(Expires::After(duration));
    let found = match duration(raw) {
        Ok(duration) => after(duration),
        Err(_) => read::<String>(raw).and_then(|text| parse_time(&text).ok()).map(Expires::At),
    };
    if found.is_none() {
        let detail = format!("{} is neither a duration from 1 ms to 10 years nor a time", shown(raw));
        mistakes.add("expires", detail, EXPIRES);
    }
    found
}

/// The field `tags`; `None` if it is missing, or wrong, which adds a mistake.
fn tags(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Tags> {
    let raw = fields.get("tags")?;
    let found = serde_json::from_str(raw.get()).map_err(|_| format!("{} is not a list", shown(raw)));
    let tags = found.and_then(|FirstItems::<MAX_TAGS> { first, count }| {
        if count > MAX_TAGS {
            return Err(format!("{count} tags"));
        }
        let text = |raw| read(raw).ok_or_else(|| format!("{} is not a string", shown(raw)));
        Tags::parse(&first.into_iter().map(text).collect::<Result<Vec<String>, _>>()?)
    });
    tags.map_err(|detail| mistakes.add("tags", detail, Tags::ALLOWED)).ok()
}
