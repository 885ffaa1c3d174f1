//! The format of log lines: text or JSON. Also the lines about the log itself, which are formatted here because no
//! filter, limit or full queue may suppress them.

use ringback_core::clock::Timestamp;
use ringback_core::enum_names::must_be;
use serde_json::json;
use tracing::Level;

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = must_be::<Self>)]
pub enum LogFormat {
    /// Text; coloured on a terminal.
    Text,
    /// One JSON object per line.
    Json,
}

/// A line that says how many lines are missing in the log.
pub(super) struct MissingLines<'a> {
    pub(super) level: Level,
    pub(super) target: &'a str,
    pub(super) message: &'static str,
    /// The message of the missing lines, if they have one in common.
    pub(super) like: Option<&'a str>,
    pub(super) lines: u64,
    /// When the first of them was left out, if that is known.
    pub(super) since: Option<Timestamp>,
}

impl MissingLines<'_> {
    pub(super) fn line(&self, format: LogFormat, now: Timestamp) -> String {
        let Self { level, target, message, like, lines, since } = self;
        match format {
            LogFormat::Text => {
                let like = like.map_or_else(String::new, |like| format!(" like={like:?}"));
                let since = since.map_or_else(String::new, |since| format!(" since={since}"));
                format!("{now} {level:>5} {target}: {message}{like} lines={lines}{since}\n")
            }
            LogFormat::Json => {
                let mut line = json!({
                    "timestamp": now.to_string(), "level": level.as_str(), "message": message,
                    "lines": lines, "target": target,
                });
                if let Some(since) = since {
                    line["since"] = json!(since.to_string());
                }
                if let Some(like) = like {
                    line["like"] = json!(like);
                }
                format!("{line}\n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_format_is_text_or_json() {
        assert_eq!("json".parse(), Ok(LogFormat::Json));
        assert_eq!("text".parse(), Ok(LogFormat::Text));
        assert_eq!("xml".parse::<LogFormat>(), Err("must be text or json".to_owned()));
    }

    #[test]
    fn missing_lines_are_reported_in_the_format_of_the_others() {
        let now = Timestamp::from_millis(1_763_600_000_120);
        let mut missing = MissingLines {
            level: Level::WARN,
            target: "ringback_service::telemetry",
            message: "lines are missing",
            like: None,
            lines: 12,
            since: Some(Timestamp::from_millis(0)),
        };
        assert_eq!(
            missing.line(LogFormat::Text, now),
            "2025-11-20T00:53:20.120Z  WARN ringback_service::telemetry: lines are missing lines=12 since=1970-01-01T00:00:00.000Z\n"
        );
        missing.like = Some("a \"b\"");
        assert!(
            missing.line(LogFormat::Text, now).contains(r#": lines are missing like="a \"b\"" lines=12 "#)
        );
        let line: serde_json::Value = missing.line(LogFormat::Json, now).parse().unwrap();
        let expected = json!({
            "timestamp": "2025-11-20T00:53:20.120Z", "level": "WARN", "target": "ringback_service::telemetry",
            "message": "lines are missing", "like": "a \"b\"", "lines": 12, "since": "1970-01-01T00:00:00.000Z",
        });
        assert_eq!(line, expected);
    }
}
