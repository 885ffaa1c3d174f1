//! Reads query parameters one by one and collects all mistakes, for a single 422 answer.

use std::fmt::Display;

use axum::extract::Query;
use http::request::Parts;
use ringback_core::job::Topic;
use ringback_core::wire::{DEFAULT_PAGE, FieldError, MAX_PAGE, Problem};

use crate::error::ApiError;

/// A query with more parameters is refused without reading them.
const MAX_PARAMETERS: usize = 64;
/// The most characters of a value in a message.
const MAX_SHOWN: usize = 80;

/// The parameters of a query, and the mistakes found so far.
pub(super) struct Parameters {
    pairs: Vec<(String, String)>,
    mistakes: Vec<FieldError>,
}

impl Parameters {
    /// Collects the parameters with `known` names. Any other, and any that is repeated, is a mistake.
    pub(super) fn new(parts: &Parts, known: &[&str]) -> Result<Self, ApiError> {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let Query(pairs) = pairs.map_err(|rejection| Problem::unreadable(rejection.body_text()))?;
        if pairs.len() > MAX_PARAMETERS {
            return Err(Problem::unreadable(format!("more than {MAX_PARAMETERS} query parameters")).into());
        }
        let mut parameters = Self { pairs: Vec::new(), mistakes: Vec::new() };
        for (name, value) in pairs {
            if !known.contains(&name.as_str()) {
                parameters.mistake(&shortened(&name), "unknown parameter", known.join(", "));
            } else if parameters.has(&name) {
                parameters.mistake(&name, "given twice", "once");
            } else {
                parameters.pairs.push((name, value));
            }
        }
        Ok(parameters)
    }

    /// Parses a parameter. `None` if it is absent or wrong.
    pub(super) fn parse<T: std::str::FromStr>(&mut self, name: &str, allowed: impl Display) -> Option<T> {
        self.read(name, allowed, |text| text.parse().map_err(|_| is_no(name, text)))
    }

    /// The parameter `topic`.
    pub(super) fn topic(&mut self) -> Option<Topic> {
        self.parse("topic", Topic::ALLOWED)
    }

    /// The parameter `limit`, or its default.
    pub(super) fn limit(&mut self) -> usize {
        let limit = self.read("limit", format_args!("1 to {MAX_PAGE}"), |text| {
            // `usize` would parse a sign too.
            let limit = text.parse().ok().filter(|_| !text.starts_with('+'));
            limit.filter(|limit| (1..=MAX_PAGE).contains(limit)).ok_or_else(|| is_no("limit", text))
        });
        limit.unwrap_or(DEFAULT_PAGE)
    }

    /// Parses a parameter with `parse`, which returns what is wrong as its error. `None` if the
    /// parameter is absent or wrong.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        allowed: impl Display,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (_, text) = self.pairs.iter().find(|(known, _)| known == name)?;
        parse(text).map_err(|detail| self.mistake(name, detail, allowed)).ok()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(known, _)| known == name)
    }

    pub(super) fn mistake(&mut self, field: &str, detail: impl Display, allowed: impl Display) {
        let (field, detail, allowed) = (field.to_owned(), detail.to_string(), allowed.to_string());
        self.mistakes.push(FieldError { field, detail, allowed });
    }

    /// Returns all mistakes as one problem, if there are any.
    pub(super) fn finish(self) -> Result<(), ApiError> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(Problem::fields(self.mistakes).into()) }
    }
}

/// The message for a value that cannot be parsed.
pub(super) fn is_no(name: &str, text: &str) -> String {
    format!("{:?} is no {name}", shortened(text))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
