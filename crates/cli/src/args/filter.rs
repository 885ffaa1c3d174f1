//! The filter of jobs as flags, for lists, exports and commands that change many jobs: parses them, and writes them as
//! a query or as JSON.

use clap::Args;
use ringback_core::clock::{Clock as _, SystemClock, Timestamp};
use ringback_core::duration::parse_duration;
use ringback_core::state::State;
use ringback_core::store_types::Filter as JobFilter;
use ringback_core::written_time::parse_time;
use ringback_wire::{WrongValue, set_filter_field};
use serde_json::{Map, Value};

use super::values;

/// The states of jobs that are listed, exported and changed.
const PENDING_AND_DEAD: [State; 4] = [State::Delayed, State::Ready, State::Reserved, State::Dead];

/// A filter of jobs. Each flag that is given must fit.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filter")]
pub(crate) struct Filter {
    /// Only jobs of this topic
    #[arg(long, value_parser = values::topic)]
    pub(crate) topic: Option<String>,
    /// Only jobs in this state
    #[arg(long, value_parser = PENDING_AND_DEAD.map(<&str>::from))]
    pub(crate) state: Option<String>,
    /// Only jobs with this tag
    #[arg(long, value_parser = values::tag)]
    tag: Option<String>,
    /// Only jobs for this host, such as merchant.example or merchant.example:8443
    #[arg(long, value_name = "HOST", value_parser = |text: &str| field("host", text))]
    host: Option<String>,
    /// Only dead jobs with this reason: exhausted, gone, lost, or one that a consumer gave
    #[arg(long, value_name = "WORD", value_parser = |text: &str| field("reason", text))]
    reason: Option<String>,
    /// Only jobs whose last failed attempt was answered with this status
    #[arg(long, value_name = "CODE", value_parser = |text: &str| field("status", text))]
    status: Option<String>,
    /// Only jobs with this text in the error of the last failed attempt
    #[arg(long, value_name = "TEXT", value_parser = |text: &str| field("error", text))]
    error: Option<String>,
    /// Only jobs due at this time or later: RFC 3339, or a duration from now
    #[arg(long, value_name = "TIME", value_parser = ahead)]
    due_after: Option<String>,
    /// Only jobs due before this time: RFC 3339, or a duration from now
    #[arg(long, value_name = "TIME", value_parser = ahead)]
    due_before: Option<String>,
    /// Only jobs created at this time or later: RFC 3339, or how long ago
    #[arg(long, value_name = "TIME", value_parser = ago)]
    created_after: Option<String>,
    /// Only jobs created before this time: RFC 3339, or how long ago
    #[arg(long, value_name = "TIME", value_parser = ago)]
    created_before: Option<String>,
    /// Only jobs that failed last at this time or later: RFC 3339, or how long ago
    #[arg(long, value_name = "TIME", value_parser = ago)]
    failed_after: Option<String>,
    /// Only jobs that failed last before this time: RFC 3339, or how long ago
    #[arg(long, value_name = "TIME", value_parser = ago)]
    failed_before: Option<String>,
    /// Only jobs whose id begins with this
    #[arg(long, value_name = "TEXT", value_parser = |text: &str| field("id_prefix", text))]
    id_prefix: Option<String>,
}

impl Filter {
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let fields = [
            ("topic", &self.topic),
            ("state", &self.state),
            ("tag", &self.tag),
            ("host", &self.host),
            ("reason", &self.reason),
            ("status", &self.status),
            ("error", &self.error),
            ("due_after", &self.due_after),
            ("due_before", &self.due_before),
            ("created_after", &self.created_after),
            ("created_before", &self.created_before),
            ("failed_after", &self.failed_after),
            ("failed_before", &self.failed_before),
            ("id_prefix", &self.id_prefix),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// Whether no flag is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.query().is_empty()
    }

    /// The filter in a request body.
    pub(crate) fn json(&self) -> Value {
        let value = |name: &str, text: String| match (name, text.parse::<u16>()) {
            ("status", Ok(status)) => status.into(),
            _ => Value::from(text),
        };
        let fields = self.query().into_iter().map(|(name, text)| (name.to_owned(), value(name, text)));
        fields.collect::<Map<_, _>>().into()
    }
}

/// Checks the value of a field as the API does.
fn field(name: &str, text: &str) -> Result<String, String> {
    match set_filter_field(&mut JobFilter::default(), name, text) {
        Ok(()) => Ok(text.to_owned()),
        Err(WrongValue { detail, allowed }) => Err(format!("{detail}; {allowed}")),
    }
}

/// Parses a point in time, or a duration from now into the future.
fn ahead(text: &str) -> Result<String, String> {
    time(text, |now, duration| now.plus(duration))
}

/// Parses a point in time, or how long ago it was.
fn ago(text: &str) -> Result<String, String> {
    time(text, |now, duration| {
        let back = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Timestamp::from_millis(now.as_millis().saturating_sub(back))
    })
}

fn time(
    text: &str,
    from_now: impl FnOnce(Timestamp, std::time::Duration) -> Timestamp,
) -> Result<String, String> {
    match parse_duration(text) {
        Ok(duration) => Ok(from_now(SystemClock.now(), duration).to_string()),
        Err(_) => parse_time(text)
            .map(|_| text.to_owned())
            .map_err(|error| format!("{error}; write a duration such as 1h or 30m, or {}", error.allowed())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_ahead_or_ago() {
        let now = SystemClock.now().as_millis();
        let at = |text: Result<String, String>| parse_time(&text.unwrap()).unwrap().as_millis();
        assert!(at(ahead("1h")) >= now + 3_600_000 && at(ago("1h")) <= now);
        assert!(at(ago("1h")) >= now - 3_600_000 && at(ago("100000w")) == 0);
        assert_eq!(ahead("2026-11-20T09:30:00Z").as_deref(), Ok("2026-11-20T09:30:00Z"));
        assert!(ahead("soon").unwrap_err().contains("a duration such as 1h"));
    }

    #[test]
    fn values_are_checked_as_the_api_does() {
        for (name, text) in [("host", "h:80"), ("status", "503"), ("error", "timed out"), ("id_prefix", "a~")]
        {
            assert_eq!(field(name, text).as_deref(), Ok(text));
        }
        for (name, text) in [("host", "http://h/"), ("status", "9"), ("error", ""), ("reason", "a b")] {
            assert!(!field(name, text).unwrap_err().is_empty(), "{name}");
        }
    }

    #[test]
    fn a_status_is_a_number_in_a_body() {
        let filter = Filter { status: Some("503".into()), tag: Some("17".into()), ..Filter::default() };
        assert_eq!(filter.json().to_string(), r#"{"status":503,"tag":"17"}"#);
    }
}
