//! The configuration of an archiver: its settings, how they are parsed, and which combinations are refused.

use std::path::PathBuf;
use std::time::Duration;

use ringback_archive::pipe::Source;
use ringback_archive::{ArchiveUrl, SETTINGS as ARCHIVE};
use ringback_core::store_types::Options;
use ringback_postgres::Server;
use ringback_service::{Lookup, Setting};
use ringback_store::settings;

/// How long a call to the store may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);

const STORE: &[Setting] = &Setting::table(settings::NAMES);
const OWN: &[Setting] = &Setting::table([
    (
        "ADMIN_LISTEN",
        "127.0.0.1:7415",
        "Where /healthz, /readyz and /metrics are served, IP address and port; two processes on one machine need two ports",
    ),
    (
        "ARCHIVE_SOURCE",
        "store",
        "Where ended jobs come from: store, or pipe for the standard input, as `ringback up` starts it; with history it takes none and answers the queries of the API that has started it",
    ),
    (
        "CA_FILE",
        "",
        "File (PEM) with the certificate authorities that PostgreSQL is trusted by on TLS; empty: those of the system",
    ),
]);

/// The configuration of an archiver.
#[derive(Clone, Debug)]
pub struct Config {
    /// How to reach the store.
    pub store: Options,
    /// The database, and what goes into it.
    pub archive: ringback_archive::Config,
    /// The file with the certificate authorities of PostgreSQL; those of the system without one (`CA_FILE`).
    pub authorities: Option<PathBuf>,
    /// Where ends come from (`ARCHIVE_SOURCE`).
    pub(crate) source: Source,
}

impl Config {
    pub const SETTINGS: &[&[Setting]] = &[STORE, ARCHIVE, OWN];

    /// Reads the settings and collects mistakes in `lookup`.
    pub fn load(lookup: &mut Lookup) -> Self {
        let store =
            lookup.group(|get| settings::parse(get, CALL_TIMEOUT), || settings::defaults(CALL_TIMEOUT));
        let source = lookup.parse("ARCHIVE_SOURCE");
        if source == Source::Store && store.url.starts_with("embedded:") {
            lookup.reject(
                "STORE",
                "an embedded store is open in one process: set RINGBACK_ARCHIVE for `ringback up`, which starts an archiver itself",
            );
        }
        let is_named = !lookup.text("ARCHIVE").is_empty();
        let archive = ringback_archive::Config::load(lookup);
        let file = lookup.text("CA_FILE");
        let authorities: Option<PathBuf> = (!file.is_empty()).then(|| file.into());
        if let Some(ArchiveUrl::Postgres(url)) = archive.as_ref().map(|archive| &archive.url)
            && let Err(why) = Server::new(url, authorities.as_deref(), "ringback-archiver")
        {
            lookup.reject("ARCHIVE", why);
        }
        if !is_named {
            lookup.reject(
                "ARCHIVE",
                "must name the database: postgres://user:password@host/database, or sqlite: and a file",
            );
        }
        Self {
            store,
            archive: archive.unwrap_or_else(ringback_archive::Config::nowhere),
            authorities,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use ringback_service::settings::load_from;

    use super::*;

    fn load(env: &[(&str, &str)]) -> (Config, Vec<String>) {
        load_from(Config::SETTINGS, env, Config::load)
    }

    #[test]
    fn a_database_has_to_be_named() {
        let (_, mistakes) = load(&[]);
        assert!(mistakes.len() == 1 && mistakes[0].contains("RINGBACK_ARCHIVE"), "{mistakes:?}");
        assert_eq!(load(&[("ARCHIVE", "sqlite:a.db")]).1, [""; 0]);
    }

    #[test]
    fn a_url_that_postgres_does_not_know_is_a_mistake_that_shows_no_password() {
        let (_, mistakes) = load(&[("ARCHIVE", "postgres://u:s3cret@h:port/d?sslmode=maybe")]);
        assert!(mistakes.len() == 1 && !mistakes[0].contains("s3cret"), "{mistakes:?}");
    }

    #[test]
    fn an_embedded_store_is_refused_unless_ends_come_from_a_pipe() {
        let embedded = [("ARCHIVE", "sqlite:a.db"), ("STORE", "embedded:./data")];
        assert_eq!(load(&embedded).1.len(), 1);
        let (config, mistakes) = load(&[&embedded[..], &[("ARCHIVE_SOURCE", "pipe")]].concat());
        assert_eq!((config.source, mistakes.len()), (Source::Pipe, 0));
    }
}
