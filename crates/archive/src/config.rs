//! The settings of the archive and their values: its URL, which ended jobs it keeps, how long, and its outbox.

use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ringback_core::connection_url::PostgresUrl;
use ringback_core::duration::parse_duration;
use ringback_core::store_types::{EndedState, EndedStates, WhenFull};
use ringback_service::{Lookup, Setting};

/// The shortest time for which ended jobs are kept, if they are removed at all.
const MIN_KEEP: Duration = Duration::from_secs(24 * 60 * 60);
/// The largest outbox, in MiB.
const MAX_OUTBOX_MIB: u32 = 1024 * 1024;

pub const SETTINGS: &[Setting] = &Setting::table([
    (
        "ARCHIVE",
        "",
        "The database that keeps ended jobs: postgres://user:password@host/database, or sqlite: and the path of a file; empty for none. Give a password in the environment: all users of a machine can read command lines",
    ),
    (
        "ARCHIVE_STATES",
        "done dead expired cancelled purged",
        "Which ended jobs it keeps of topics whose policy does not say; off for none",
    ),
    (
        "ARCHIVE_BODIES",
        "on",
        "Whether it keeps the bodies of jobs of topics whose policy does not say: on or off",
    ),
    (
        "ARCHIVE_KEEP",
        "",
        "How long it keeps ended jobs and entries of the audit log, at least 1d; in PostgreSQL jobs go by whole months; empty for ever",
    ),
    (
        "ARCHIVE_OUTBOX_MIB",
        "256",
        "How many MiB of ended jobs may wait in the store while the database is away, 1 to 1048576; each shard has an equal part",
    ),
    (
        "ARCHIVE_WHEN_FULL",
        "stall",
        "What happens beyond that: stall refuses submits, and at twice that stops deliveries; drop drops the oldest ended jobs",
    ),
]);

/// The configuration of the archive.
#[derive(Clone, Debug)]
pub struct Config {
    pub url: ArchiveUrl,
    /// Which ended jobs it keeps of topics whose policy does not say (`ARCHIVE_STATES`).
    pub states: EndedStates,
    /// Whether it keeps the bodies of jobs of topics whose policy does not say (`ARCHIVE_BODIES`).
    pub with_bodies: bool,
    /// How long it keeps ended jobs and the audit log; `None` for ever (`ARCHIVE_KEEP`).
    pub keep: Option<Duration>,
    /// How many MiB of ended jobs may wait in the store (`ARCHIVE_OUTBOX_MIB`).
    pub outbox_mib: u32,
    /// What happens beyond that (`ARCHIVE_WHEN_FULL`).
    pub when_full: WhenFull,
}

impl Config {
    /// Reads the settings and records mistakes in `lookup`. `None` without an archive, or if its URL is wrong.
    pub fn load(lookup: &mut Lookup) -> Option<Self> {
        let url = ArchiveUrl::load(lookup);
        let states = states(&lookup.text("ARCHIVE_STATES")).unwrap_or_else(|why| {
            lookup.reject("ARCHIVE_STATES", why);
            EndedStates::all()
        });
        let with_bodies = lookup.is_on("ARCHIVE_BODIES");
        let keep = keep(&lookup.text("ARCHIVE_KEEP")).unwrap_or_else(|why| {
            lookup.reject("ARCHIVE_KEEP", why);
            None
        });
        let outbox_mib = lookup.number_in("ARCHIVE_OUTBOX_MIB", 1..=MAX_OUTBOX_MIB);
        let when_full = lookup.parse("ARCHIVE_WHEN_FULL");
        Some(Self { url: url?, states, with_bodies, keep, outbox_mib, when_full })
    }

    /// A configuration that stands for wrong settings, so that other mistakes are found too.
    pub fn nowhere() -> Self {
        Self {
            url: ArchiveUrl::Sqlite(PathBuf::new()),
            states: EndedStates::default(),
            with_bodies: false,
            keep: None,
            outbox_mib: 1,
            when_full: WhenFull::Stall,
        }
    }
}

fn states(text: &str) -> Result<EndedStates, String> {
    if text == "off" {
        return Ok(EndedStates::default());
    }
    let names = text.split([' ', ',']).filter(|name| !name.is_empty());
    let kinds: EndedStates = names.map(str::parse::<EndedState>).collect::<Result<_, _>>()?;
    if kinds == EndedStates::default() {
        Err("must name at least one state, or be off".to_owned())
    } else {
        Ok(kinds)
    }
}

fn keep(text: &str) -> Result<Option<Duration>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match parse_duration(text) {
        Ok(keep) if keep >= MIN_KEEP => Ok(Some(keep)),
        Ok(_) => Err("must be at least 1d".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Clone, PartialEq, Eq)]
pub enum ArchiveUrl {
    /// The URL of a PostgreSQL database, which can be read. It may have a password, so it is not shown.
    Postgres(String),
    /// The file of a SQLite database.
    Sqlite(PathBuf),
}

impl ArchiveUrl {
    /// Reads the setting `ARCHIVE`; `None` without an archive, or if the URL is wrong, which is recorded as a mistake.
    pub fn load(lookup: &mut Lookup) -> Option<Self> {
        let text = lookup.text("ARCHIVE");
        if text.is_empty() {
            return None;
        }
        text.parse().map_err(|why: String| lookup.reject("ARCHIVE", why)).ok()
    }
}

impl Debug for ArchiveUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(_) => f.write_str("postgres://***"),
            Self::Sqlite(file) => write!(f, "sqlite:{}", file.display()),
        }
    }
}

impl FromStr for ArchiveUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            None if PostgresUrl::has_scheme(text) => {
                PostgresUrl::parse(text).map(|_| Self::Postgres(text.to_owned()))
            }
            _ => Err("must be postgres://user:password@host/database, or sqlite: and the path of a file"
                .to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ringback_service::settings::load_from;

    use super::*;

    fn load(env: &[(&str, &str)]) -> (Option<Config>, Vec<String>) {
        const ADMIN: &[Setting] = &[Setting::new("ADMIN_LISTEN", "127.0.0.1:7415", "The admin port")];
        load_from(&[SETTINGS, ADMIN], env, Config::load)
    }

    #[test]
    fn without_a_database_there_is_no_archive() {
        let (config, mistakes) = load(&[]);
        assert!(config.is_none() && mistakes.is_empty(), "{mistakes:?}");
    }

    #[test]
    fn the_defaults_keep_all_ends_for_ever() {
        let (config, mistakes) = load(&[("ARCHIVE", "sqlite:./a.db")]);
        let config = config.unwrap();
        assert_eq!(mistakes, [""; 0]);
        assert_eq!(config.url, ArchiveUrl::Sqlite("./a.db".into()));
        assert_eq!((config.states, config.with_bodies, config.keep), (EndedStates::all(), true, None));
        assert_eq!((config.outbox_mib, config.when_full), (256, WhenFull::Stall));
    }

    #[test]
    fn all_mistakes_are_named_and_none_shows_a_password() {
        let (_, mistakes) = load(&[
            ("ARCHIVE", "mysql://u:s3cret@h/d"),
            ("ARCHIVE_STATES", "done lost"),
            ("ARCHIVE_BODIES", "yes"),
            ("ARCHIVE_KEEP", "1h"),
            ("ARCHIVE_OUTBOX_MIB", "0"),
            ("ARCHIVE_WHEN_FULL", "wait"),
        ]);
        assert_eq!(mistakes.len(), 6, "{mistakes:?}");
        assert!(mistakes.iter().all(|line| !line.contains("s3cret")), "{mistakes:?}");
    }

    #[test]
    fn a_url_is_read_at_once_and_is_not_shown() {
        let (_, mistakes) = load(&[("ARCHIVE", "postgres://h/d?password=s3cret&sslmod=require")]);
        assert!(mistakes.len() == 1 && mistakes[0].contains("sslmod"), "{mistakes:?}");
        assert!(!mistakes[0].contains("s3cret"), "{mistakes:?}");
        let (config, _) = load(&[("ARCHIVE", "postgres://h/d?password=s3cret")]);
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    #[test]
    fn ends_are_named_or_off() {
        assert_eq!(states("dead, purged").unwrap(), EndedStates::of([EndedState::Dead, EndedState::Purged]));
        assert_eq!(states("off").unwrap(), EndedStates::default());
        assert!(states("").is_err() && states("dead off").is_err());
    }
}
