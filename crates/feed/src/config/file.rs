//! Reads and checks the TOML file with the feeds. All mistakes are found at once, each with the name of its feed.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ringback_core::connection_url::{self, shown_in_text};
use ringback_core::duration::{format_duration, parse_duration};
use ringback_core::encoding::without_mark;
use ringback_core::job::Topic;
use ringback_core::store_types::is_notice_topic;
use serde::Deserialize;
use strum::VariantArray as _;

use super::{Changed, Feed, Outbox, PostgresUrl, Rows, SourceUrl, Window};
use crate::query::{Dialect, Parameter, Query};

/// The most feeds of a file.
const MAX_FEEDS: usize = 100;
/// The prefix of the name of an environment variable that has a URL.
const ENV: &str = "env:";
const WINDOW: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30 * 24 * 3600);
const EVERY: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    feed: Vec<FeedTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeedTable {
    name: String,
    source: String,
    topic: String,
    tenant: Option<String>,
    changed: Option<String>,
    every: Option<String>,
    query: Option<String>,
    gone: Option<String>,
    window: Option<String>,
    outbox: Option<String>,
    channel: Option<String>,
    loaded: Option<String>,
}

/// Reads a file. Returns the feeds that are right, and the mistakes of the file and of the other feeds.
pub(super) fn read(path: &str) -> (Vec<Feed>, Vec<String>) {
    let parsed =
        content(path).and_then(|text| toml::from_str::<File>(&text).map_err(|error| in_one_line(&error)));
    let tables = match parsed {
        Ok(File { feed }) if feed.is_empty() => return one("has no [[feed]]"),
        Ok(File { feed }) if feed.len() > MAX_FEEDS => {
            return one(format!("has {} feeds, and at most {MAX_FEEDS} are allowed", feed.len()));
        }
        Ok(File { feed }) => feed,
        Err(why) => return one(why),
    };
    let (mut names, mut mistakes) = (BTreeSet::new(), Vec::new());
    let mut feeds = Vec::with_capacity(tables.len());
    for table in tables {
        if !names.insert(table.name.clone()) {
            mistakes.push(format!("feed {}: another feed has this name", table.name));
        }
        let mut reading = Reading { feed: table.name.clone(), mistakes: &mut mistakes };
        feeds.extend(reading.feed(&table));
    }
    (feeds, mistakes)
}

fn content(path: &str) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let text = without_mark(&bytes).map_err(|error| error.to_string())?;
    String::from_utf8(text.to_vec()).map_err(|error| format!("is not in UTF-8: {error}"))
}

fn one(why: impl Display) -> (Vec<Feed>, Vec<String>) {
    (Vec::new(), vec![why.to_string()])
}

/// An error of the parser without its excerpt of the file, which may have a password.
fn in_one_line(error: &toml::de::Error) -> String {
    let lines = error.to_string();
    let place = lines.lines().next().unwrap_or_default().trim_start_matches("TOML parse error ");
    format!("{} {place}", error.message().trim())
}

/// Reads one feed.
struct Reading<'a> {
    feed: String,
    mistakes: &'a mut Vec<String>,
}

impl Reading<'_> {
    fn feed(&mut self, table: &FeedTable) -> Option<Feed> {
        let name = self.check("name", table.name.parse().map_err(text));
        let source = self.check("source", source(&table.source));
        let topic = self.check("topic", topic(&table.topic));
        let tenant = table
            .tenant
            .as_deref()
            .map(|tenant| tenant.parse().map_err(|allowed| format!("must be {allowed}")));
        let tenant = tenant.transpose();
        let tenant = self.check("tenant", tenant);
        let changed = self.check("changed", changed(table.changed.as_deref()));
        let every = self.check("every", duration(table.every.as_deref().unwrap_or("30s"), &EVERY));
        let rows = match (&table.query, &table.outbox) {
            (Some(query), None) => self.window(query, table, source, every).map(Rows::Window),
            (None, Some(name)) => self.outbox(name, table, source).map(Rows::Outbox),
            _ => self.check("query", Err("or outbox must be given, and not both".to_owned())),
        };
        Some(Feed {
            name: name?,
            topic: topic?,
            tenant: tenant?,
            changed: changed?,
            every: every?,
            rows: rows?,
        })
    }

    fn window(
        &mut self,
        query: &str,
        table: &FeedTable,
        source: Option<SourceUrl>,
        every: Option<Duration>,
    ) -> Option<Window> {
        let others = [("channel", &table.channel), ("loaded", &table.loaded)];
        self.none_of(others, "is given for a query: it belongs to an outbox");
        let dialect = match source {
            Some(SourceUrl::Sqlite(_)) => Dialect::Sqlite,
            Some(SourceUrl::Postgres(_)) | None => Dialect::Postgres,
        };
        let query = self.check("query", Query::parse(dialect, query, Parameter::VARIANTS));
        let changes = [Parameter::From, Parameter::After, Parameter::Limit];
        let gone = table.gone.as_deref().map(|gone| Query::parse(dialect, gone, &changes)).transpose();
        let gone = self.check("gone", gone);
        let ahead = self.check("window", duration(table.window.as_deref().unwrap_or("1h"), &WINDOW));
        if let (Some(ahead), Some(every)) = (ahead, every)
            && ahead < every
        {
            let why = "is shorter than every: rows would be due before they are read";
            self.check::<()>("window", Err(why.to_owned()));
        }
        Some(Window { source: source?, query: query?, gone: gone?, ahead: ahead? })
    }

    fn outbox(&mut self, name: &str, table: &FeedTable, source: Option<SourceUrl>) -> Option<Outbox> {
        let others = [("window", &table.window), ("gone", &table.gone)];
        self.none_of(others, "is given for an outbox: it belongs to a query");
        let url = match source {
            Some(SourceUrl::Postgres(url)) => Some(url),
            Some(SourceUrl::Sqlite(_)) => {
                self.check("outbox", Err("needs PostgreSQL: a SQLite file has no notifications".to_owned()))
            }
            None => None,
        };
        let name = self.check("outbox", quoted(name));
        let channel = match table.channel.as_deref().unwrap_or("ringback_outbox") {
            name if name.contains('.') => Err(format!("is \"{name}\": it must be one name, without a dot")),
            name => quoted(name),
        };
        let channel = self.check("channel", channel);
        let marks = self.check(
            "loaded",
            match table.loaded.as_deref() {
                None | Some("delete") => Ok(false),
                Some("mark") => Ok(true),
                Some(other) => Err(format!("is \"{other}\": it must be delete or mark")),
            },
        );
        Some(Outbox { url: url?, table: name?, channel: channel?, marks: marks? })
    }

    fn none_of(&mut self, fields: [(&str, &Option<String>); 2], why: &str) {
        for (field, _) in fields.into_iter().filter(|(_, given)| given.is_some()) {
            self.check::<()>(field, Err(why.to_owned()));
        }
    }

    /// Returns the value of a field; if it is wrong, adds that to the mistakes and returns `None`.
    fn check<T>(&mut self, field: &str, read: Result<T, String>) -> Option<T> {
        let noted =
            |why: String| self.mistakes.push(format!("feed {}: {field} {}", self.feed, shown_in_text(&why)));
        read.map_err(noted).ok()
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

fn source(text: &str) -> Result<SourceUrl, String> {
    let url = match text.strip_prefix(ENV) {
        Some(name) if !is_variable(name) => {
            return Err(format!(
                "begins with {ENV}: behind it is the name of an environment variable, of A-Z a-z 0-9 and _"
            ));
        }
        Some(variable) => variable_of(variable)?,
        None => text.to_owned(),
    };
    if let Some(file) = url.strip_prefix("sqlite:").filter(|file| !file.is_empty()) {
        return Ok(SourceUrl::Sqlite(PathBuf::from(file)));
    }
    if connection_url::PostgresUrl::has_scheme(&url) {
        return connection_url::PostgresUrl::parse(&url).map(|_| SourceUrl::Postgres(PostgresUrl(url)));
    }
    Err(format!(
        "must be postgres://user:password@host/database, sqlite: and a file, or {ENV} and an environment variable with one of them"
    ))
}

#[expect(clippy::disallowed_methods, reason = "the file names the variable, so no list of settings has it")]
fn variable_of(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("names the environment variable {name}, which is not set"))
}

/// Whether a text can be the name of a variable. Other texts are not shown, since they may be a URL with a password.
fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn topic(name: &str) -> Result<Topic, String> {
    let topic: Topic = name.parse().map_err(|allowed| format!("must be {allowed}"))?;
    if is_notice_topic(&topic) { Err("belongs to notices: choose another one".to_owned()) } else { Ok(topic) }
}

fn changed(text: Option<&str>) -> Result<Changed, String> {
    match text {
        None | Some("replace") => Ok(Changed::Replace),
        Some("keep") => Ok(Changed::Keep),
        Some(other) => Err(format!("is \"{other}\": it must be replace or keep")),
    }
}

fn duration(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, String> {
    let [least, most] = [range.start(), range.end()].map(|end| format_duration(*end));
    let duration = parse_duration(text).ok().filter(|duration| range.contains(duration));
    duration
        .ok_or_else(|| format!("is \"{text}\": it must be a duration from {least} to {most}, such as 30s"))
}

/// The name of a table or a channel as quoted SQL: one name, or two with a dot between them, each of up to 63 letters,
/// digits and underscores. Fails for any other text.
fn quoted(name: &str) -> Result<String, String> {
    let is_part = |part: &str| {
        !part.is_empty() && part.len() <= 63 && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if name.split('.').all(is_part) && name.split('.').count() <= 2 {
        Ok(name.split('.').map(|part| format!("\"{part}\"")).collect::<Vec<_>>().join("."))
    } else {
        Err(format!(
            "is \"{name}\": it must be a name of A-Z a-z 0-9 and _, or two with a dot between them, in the case that the database shows"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tempfile::NamedTempFile;

    use super::*;

    fn mistakes(toml: &str) -> Vec<String> {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(toml.as_bytes()).unwrap();
        read(file.path().to_str().unwrap()).1
    }

    #[test]
    fn all_mistakes_of_all_feeds_are_named_at_once() {
        let found = mistakes(
            r#"
            [[feed]]
            name = "a b"
            source = "env:postgres://u:s3cret@h/d"
            topic = ""
            query = "select :form"
            every = "0s"
            changed = "maybe"
            channel = "c"
            [[feed]]
            name = "two"
            source = "sqlite:x"
            topic = "t"
            outbox = "x;y"
            window = "1h"
            channel = "a.b"
            loaded = "burn"
            [[feed]]
            name = "three"
            source = "sqlite:x"
            topic = "t"
            query = "select :from, :to, :after, :limit"
            window = "10s"
            "#,
        );
        assert_eq!(found.len(), 13, "{found:#?}");
        let feeds = ["feed a b: ", "feed two: ", "feed three: window"];
        assert!(found.iter().all(|why| feeds.iter().any(|feed| why.starts_with(feed))), "{found:#?}");
        assert!(found.iter().all(|why| !why.contains("s3cret")), "{found:#?}");
    }

    #[test]
    fn a_file_that_is_no_toml_says_where_and_shows_no_line_of_it() {
        let found = mistakes("[[feed]]\nsource = \"postgres://u:s3cret@h/d\"\nsource = 5");
        assert!(found.len() == 1 && found[0].contains("line 3"), "{found:?}");
        assert!(!found[0].contains("s3cret"), "{found:?}");
        assert!(mistakes("").concat().contains("[[feed]]"));
        let found = mistakes("[[feed]]\nnam = \"x\"");
        assert!(found.concat().contains("nam"), "{found:?}");
    }

    #[test]
    fn names_of_tables_are_quoted() {
        assert_eq!(quoted("public.jobs"), Ok("\"public\".\"jobs\"".to_owned()));
        for bad in ["", "a.b.c", "a\"b", "a b", ".a"] {
            assert!(quoted(bad).is_err(), "{bad}");
        }
    }
}
