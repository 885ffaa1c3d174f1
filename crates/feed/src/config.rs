//! The settings of a feed process and the types of feeds. `file` reads the file with the feeds.

mod file;

use std::fmt::{self, Debug};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use ringback_core::duration::format_duration;
use ringback_core::job::{Tenant, Topic};
use ringback_core::store_types::{FeedName, MAX_FEED_LEASE, Options};
use ringback_egress::Guard;
use ringback_service::{Lookup, Setting};
use ringback_store::settings;

use crate::query::Query;

/// The longest timeout of a call to the store. It is also at most a third of the lease, so that the last call before the
/// lease runs out has ended by then.
const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(3);
const LEASE: RangeInclusive<Duration> = Duration::from_secs(1)..=MAX_FEED_LEASE;
/// How much earlier than the last complete pass rows are read again: transactions that commit later than this after
/// their rows were due are not noticed.
pub(crate) const READ_BACK: Duration = Duration::from_secs(15 * 60);

/// How long a feed may be away at least, before somebody has to decide from where it goes on.
const AWAY: Duration = Duration::from_secs(15 * 60);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const EGRESS: &[Setting] = &Setting::table(ringback_egress::NAMES);
const OWN: &[Setting] = &Setting::table([
    ("FEEDS", "", "The TOML file with the feeds; ringback-feed FILE is the same"),
    (
        "FEED_LOCK_TTL",
        "15s",
        "How long a feed stays with a process that does not renew its lease, 1s to 1m; it is renewed four times within this time. A call to the store times out after a third of it, at most 3s",
    ),
    (
        "CA_FILE",
        "",
        "File (PEM) with the certificate authorities that PostgreSQL is trusted by on TLS; empty: those of the system",
    ),
    (
        "ADMIN_LISTEN",
        "127.0.0.1:7416",
        "Where /healthz, /readyz and /metrics are served, IP address and port; two processes on one machine need two ports",
    ),
]);

/// The configuration of a feed process.
#[derive(Clone, Debug)]
pub struct Config {
    /// How to reach the store.
    pub store: Options,
    /// Where jobs may go.
    pub guard: Guard,
    /// The file with the certificate authorities of PostgreSQL; those of the system without one (`CA_FILE`).
    pub authorities: Option<PathBuf>,
    /// How long a feed stays with a process that does not renew its lease (`FEED_LOCK_TTL`, 15s).
    pub(crate) lease: Duration,
    pub(crate) feeds: Vec<Feed>,
}

#[derive(Clone, Debug)]
pub(crate) struct Feed {
    pub(crate) name: FeedName,
    pub(crate) topic: Topic,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) changed: Changed,
    /// How often rows are read.
    pub(crate) every: Duration,
    pub(crate) rows: Rows,
}

/// Which rows of a database are jobs.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    /// Rows of a query that are due soon.
    Window(Window),
    /// Rows of a table, as they come.
    Outbox(Outbox),
}

/// A query whose rows are read again and again.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) source: SourceUrl,
    pub(crate) query: Query,
    /// The rows whose jobs are cancelled.
    pub(crate) gone: Option<Query>,
    /// How long before they are due rows are loaded.
    pub(crate) ahead: Duration,
}

/// A table in PostgreSQL whose rows are taken out.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    pub(crate) url: PostgresUrl,
    /// Its name as SQL, quoted.
    pub(crate) table: String,
    /// The channel of its notifications as SQL, quoted.
    pub(crate) channel: String,
    /// Whether loaded rows stay, marked.
    pub(crate) marks: bool,
}

/// What becomes of a job whose row has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// It gets the content of the row, while it is delayed or ready.
    Replace,
    Keep,
}

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceUrl {
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
    Sqlite(PathBuf),
}

/// The URL of a PostgreSQL database. It may have a password, so it is not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PostgresUrl(pub(crate) String);

impl Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://***")
    }
}

impl Rows {
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Window(Window { source: SourceUrl::Postgres(_), .. }) | Self::Outbox(_) => "PostgreSQL",
            Self::Window(Window { source: SourceUrl::Sqlite(_), .. }) => "SQLite",
        }
    }
}

impl Config {
    /// The settings of a feed process.
    pub const SETTINGS: &[&[Setting]] = &[OWN, STORE, EGRESS];

    /// Reads the settings and the file, and collects mistakes in `lookup`.
    pub fn load(lookup: &mut Lookup) -> Self {
        let lease = lookup.duration_in("FEED_LOCK_TTL", LEASE);
        let call_timeout = MAX_CALL_TIMEOUT.min(lease / 3);
        let store =
            lookup.group(|get| settings::parse(get, call_timeout), || settings::defaults(call_timeout));
        if store.url.starts_with("embedded:") {
            lookup.reject(
                "STORE",
                "an embedded store is open in one process, so feeds need Redis: give the URL of the Redis that the other processes use",
            );
        }
        let guard = lookup.group(|get| ringback_egress::parse(get), Guard::default);
        let file = lookup.text("FEEDS");
        let feeds = if file.is_empty() {
            lookup
                .reject("FEEDS", "must name the TOML file with the feeds, such as ringback-feed feeds.toml");
            Vec::new()
        } else {
            let (feeds, mistakes) = file::read(&file);
            mistakes.into_iter().for_each(|why| lookup.reject("FEEDS", why));
            feeds
        };
        for why in feeds.iter().filter_map(|feed| feed.is_forgotten_early(store.keep_done)) {
            lookup.reject("KEEP_DONE", why);
        }
        let authorities = lookup.text("CA_FILE");
        let authorities = (!authorities.is_empty()).then(|| authorities.into());
        Self { store, guard, authorities, lease, feeds }
    }

    pub(crate) fn feed(&self, name: &str) -> Option<&Feed> {
        self.feeds.iter().find(|feed| feed.name.as_str() == name)
    }
}

impl Feed {
    /// Why jobs of this feed could be delivered twice if tombstones are kept for `keep_done`; `None` if that is long
    /// enough, or for an outbox.
    pub(crate) fn is_forgotten_early(&self, keep_done: Duration) -> Option<String> {
        let Rows::Window(Window { ahead, .. }) = &self.rows else { return None };
        let needed = *ahead + READ_BACK + self.every + AWAY;
        (keep_done <= needed).then(|| {
            format!(
                "feed {}: a row is read again for {} (window, every, {} back, and {} in which the feed may be away), and a job that ended must be known for longer, or it would be delivered again: make RINGBACK_KEEP_DONE, which all processes of the installation share, longer by more than {}, or the window shorter",
                self.name,
                format_duration(needed),
                format_duration(READ_BACK),
                format_duration(AWAY),
                format_duration(needed - keep_done),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use ringback_service::settings::load_from;
    use tempfile::NamedTempFile;

    use super::*;

    const FEED: &str = r#"
        [[feed]]
        name = "orders"
        source = "sqlite:orders.db"
        topic = "order.unpaid"
        query = "select id, due_at from o where due_at >= :from and due_at < :to and id > :after order by id limit :limit"
    "#;

    fn load(toml: &str, env: &[(&str, &str)]) -> (Config, Vec<String>) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(toml.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap();
        load_from(Config::SETTINGS, &[&[("FEEDS", path)], env].concat(), Config::load)
    }

    #[test]
    fn a_feed_has_defaults() {
        let (config, mistakes) = load(FEED, &[("KEEP_DONE", "2h")]);
        assert_eq!(mistakes, [""; 0]);
        let feed = config.feed("orders").unwrap();
        assert_eq!((feed.every, feed.changed), (Duration::from_secs(30), Changed::Replace));
        let Rows::Window(window) = &feed.rows else { panic!("{feed:?}") };
        assert_eq!((window.ahead, window.gone.is_none()), (Duration::from_secs(3600), true));
    }

    #[test]
    fn tombstones_that_are_kept_too_short_are_a_mistake_that_says_by_how_much() {
        let (_, mistakes) = load(FEED, &[]);
        assert!(mistakes.len() == 1 && mistakes[0].contains("longer by more than 30m 30s"), "{mistakes:?}");
        let shorter = FEED.replace("topic =", "window = \"10m\"\ntopic =");
        assert_eq!(load(&shorter, &[]).1, [""; 0]);
    }

    #[test]
    fn a_file_is_needed_and_a_store_that_others_can_open() {
        let (_, mistakes) = load_from(Config::SETTINGS, &[("STORE", "embedded:./data")], Config::load);
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    }

    #[test]
    fn a_password_is_not_shown() {
        let (config, _) = load(&FEED.replace("sqlite:orders.db", "postgres://u:s3cret@h/d"), &[]);
        assert!(!format!("{config:?}").contains("s3cret"));
    }
}
