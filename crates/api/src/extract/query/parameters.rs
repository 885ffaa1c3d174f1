//! Reads query parameters one by one and collects all mistakes for a single 422 answer.

use std::fmt::Display;
use std::mem;
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::Query;
use http::Uri;
use ringback_admission::Principal;
use ringback_core::clock::Timestamp;
use ringback_core::encoding::visible;
use ringback_core::job::{TenantScope, Topic};
use ringback_core::store_types::Filter;
use ringback_core::written_time::parse_time;
use ringback_wire::{DEFAULT_PAGE, FieldError, MAX_PAGE, Problem};

use crate::error::ApiError;

/// A query with more parameters is refused without reading them.
const MAX_PARAMETERS: usize = 64;
/// The most characters of a value in a message.
const MAX_SHOWN: usize = 80;

/// The parameters of a query, the names of those that were read, and the mistakes found so far.
pub(crate) struct Parameters {
    pairs: Vec<(String, String)>,
    /// The names of those with a `+`, which means a space (application/x-www-form-urlencoded).
    with_plus: Vec<String>,
    known: Vec<&'static str>,
    mistakes: Vec<FieldError>,
    caller: Arc<Principal>,
    /// Why the caller may not ask for what it names.
    refusal: Option<Problem>,
}

impl Parameters {
    pub(super) fn new(uri: &Uri, caller: Arc<Principal>) -> Result<Self, ApiError> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
        let Query(pairs) = pairs.map_err(|rejection| Problem::unreadable(rejection.body_text()))?;
        if pairs.len() > MAX_PARAMETERS {
            return Err(Problem::unreadable(format!("more than {MAX_PARAMETERS} query parameters")).into());
        }
        let raw = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let with_plus =
            raw.filter(|(_, value)| value.contains('+')).map(|(name, _)| name.to_owned()).collect();
        Ok(Self { pairs, with_plus, known: Vec::new(), mistakes: Vec::new(), caller, refusal: None })
    }

    /// Parses a parameter. `None` if it is absent or wrong; a wrong value is a mistake.
    pub(super) fn parse<T: FromStr>(&mut self, name: &'static str, allowed: impl Display) -> Option<T> {
        self.read(name, allowed, |text| text.parse().map_err(|_| is_no(name, text)))
    }

    /// Reads a text that `is_valid` accepts. `None` if it is absent or wrong; a wrong value is a mistake.
    pub(super) fn text(
        &mut self,
        name: &'static str,
        allowed: impl Display,
        is_valid: impl FnOnce(&str) -> bool,
    ) -> Option<String> {
        self.read(name, allowed, |text| {
            is_valid(text).then(|| text.to_owned()).ok_or_else(|| is_no(name, text))
        })
    }

    /// The parameter `topic`, as a topic of the caller's tenant. `None` if it is absent or wrong. A topic in a list of
    /// all tenants is a mistake; for one that the key may not use, [`Self::finish`] fails with 403.
    pub(super) fn topic(&mut self) -> Option<Topic> {
        let topic: Topic = self.parse("topic", Topic::ALLOWED)?;
        if self.caller.lists_all_tenants() {
            let allowed = "no topic; or the tenant of the topic in ringback-tenant, or ~none";
            self.mistake("topic", "a topic is of one tenant, and this list is about all", allowed);
        }
        let topic = topic.of_tenant(self.caller.tenant());
        self.refusal = self.caller.check_topic(&topic).err();
        Some(topic)
    }

    /// The parameter `cursor`, if it is a topic as [`cursor_of`] writes it. `None` if it is absent or wrong.
    pub(super) fn topic_cursor(&mut self, allowed: impl Display) -> Option<Topic> {
        let name = "cursor";
        let topic =
            self.read(name, allowed, |text| Topic::from_stored(text).ok_or_else(|| is_no(name, text)))?;
        Some(self.of_caller(topic))
    }

    /// A topic of a cursor: of the caller's tenant, unless its lists are about all.
    pub(super) fn of_caller(&self, topic: Topic) -> Topic {
        if self.caller.lists_all_tenants() { topic } else { topic.of_tenant(self.caller.tenant()) }
    }

    /// Whose jobs lists of the caller show.
    pub(super) fn own(&self) -> TenantScope {
        self.caller.own().clone()
    }

    /// A filter that matches all jobs that the caller's key reaches.
    pub(super) fn filter_of_caller(&self) -> Filter {
        let (scope, among) = (self.caller.reach().clone(), self.caller.topics().to_vec());
        Filter { scope, among, ..Filter::default() }
    }

    pub(super) fn value(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        self.pairs.iter().find(|(given, _)| given == name).map(|(_, text)| text.clone())
    }

    pub(super) fn time(&mut self, name: &'static str) -> Option<Timestamp> {
        self.known.push(name);
        let (_, text) = self.pairs.iter().find(|(given, _)| given == name)?;
        let time = parse_time(text).map_err(|error| (format!("{}: {error}", is_no("time", text)), error));
        time.map_err(|(detail, error)| self.mistake(name, detail, error.allowed())).ok()
    }

    pub(super) fn limit(&mut self) -> usize {
        self.count("limit", DEFAULT_PAGE, MAX_PAGE)
    }

    /// Reads a number from 1 to `most`; `default` if it is absent or wrong. A wrong value is a mistake.
    pub(super) fn count(&mut self, name: &'static str, default: usize, most: usize) -> usize {
        let count = self.read(name, format_args!("1 to {most}"), |text| {
            // `usize` would parse a sign too.
            let count = text.parse().ok().filter(|_| !text.starts_with('+'));
            count.filter(|count| (1..=most).contains(count)).ok_or_else(|| is_no(name, text))
        });
        count.unwrap_or(default)
    }

    /// Parses a parameter with `parse`, which returns what is wrong as its error. `None` if the
    /// parameter is absent or wrong.
    pub(super) fn read<T>(
        &mut self,
        name: &'static str,
        allowed: impl Display,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.known.push(name);
        let (_, text) = self.pairs.iter().find(|(given, _)| given == name)?;
        parse(text).map_err(|detail| self.mistake(name, detail, allowed)).ok()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(given, _)| given == name)
    }

    pub(super) fn mistake(&mut self, field: &str, detail: impl Display, allowed: impl Display) {
        let (field, detail, allowed) = (field.to_owned(), visible(detail.to_string()), allowed.to_string());
        self.mistakes.push(FieldError { field, detail, allowed });
    }

    /// Ends the reading of a query: 422 with all mistakes, of which unknown and repeated parameters come first; without
    /// a mistake, 403 if the caller may not use the topic that it names.
    pub(super) fn finish(mut self) -> Result<(), ApiError> {
        let mut wrong_values = mem::take(&mut self.mistakes);
        for mistake in wrong_values.iter_mut().filter(|mistake| self.with_plus.contains(&mistake.field)) {
            mistake.detail.push_str("; a + in a query means a space: write a plus sign as %2B");
        }
        let pairs = mem::take(&mut self.pairs);
        for (n, (name, _)) in pairs.iter().enumerate() {
            if !self.known.contains(&name.as_str()) {
                self.mistake(&shortened(name), "unknown parameter", self.known.join(", "));
            } else if pairs[..n].iter().any(|(earlier, _)| earlier == name) {
                self.mistake(name, "given twice", "once");
            }
        }
        self.mistakes.extend(wrong_values);
        match (self.mistakes.is_empty(), self.refusal) {
            (false, _) => Err(Problem::fields(self.mistakes).into()),
            (true, Some(refusal)) => Err(refusal.into()),
            (true, None) => Ok(()),
        }
    }
}

/// A topic as a cursor has it: with its tenant if the caller lists all tenants, else by its name alone.
pub(crate) fn cursor_of(topic: &Topic, caller: &Principal) -> String {
    if caller.lists_all_tenants() { topic.as_str().to_owned() } else { topic.to_string() }
}

/// The message for a value that cannot be parsed.
pub(crate) fn is_no(name: &str, text: &str) -> String {
    format!("{:?} is no {name}", shortened(text))
}

/// A value for a message, with `…` in place of what follows the first 80 characters.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
