//! The archive of `ringback up`: an archiver as a child process, which has the database; ends of jobs go to it through a
//! pipe. So `ringback` needs no database to be built, and the embedded store stays in one process.

use std::path::PathBuf;

use ringback_archive::pipe::ChildSink;
use ringback_archive::{Config, SETTINGS, start};
use ringback_service::{Context, Lookup, Tasks};
use ringback_store::Store;
use tokio::process::Command;
use tokio::time::{Duration, sleep};

/// The program of the child.
const PROGRAM: &str = "ringback-archiver";
/// Settings of this process that the child has too, beside those of the archive.
const SHARED: [&str; 3] = ["CA_FILE", "LOG", "LOG_FORMAT"];

/// The archive, and what its child process gets as its environment.
pub(super) struct Archive {
    config: Config,
    environment: Vec<(String, String)>,
}

impl Archive {
    /// Reads the settings of the archive; `None` without one.
    pub(super) fn load(lookup: &mut Lookup) -> Option<Self> {
        let config = Config::load(lookup)?;
        let names = SETTINGS.iter().map(|setting| setting.name).chain(SHARED);
        let environment = names.map(|name| (format!("RINGBACK_{name}"), lookup.text(name))).collect();
        Some(Self { config, environment })
    }

    /// Starts the tasks of the archive.
    pub(super) fn start(self, store: &Store, context: &Context, tasks: &mut Tasks) {
        let Self { config, environment } = self;
        let sink = ChildSink::new(move || command(&environment));
        // Deliveries go on without the database.
        start(store, &config, vec![sink], false, context, tasks);
    }
}

/// The command of the child. The address of the public port and the like are not for it.
fn command(environment: &[(String, String)]) -> Command {
    let mut command = Command::new(program());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("RINGBACK_") || name.starts_with("OTEL_")) {
            command.env_remove(name);
        }
    }
    command
        .envs(environment.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name, value)));
    command.env("RINGBACK_ARCHIVE_SOURCE", "pipe").env("RINGBACK_ADMIN_LISTEN", "127.0.0.1:0");
    command
}

/// The program beside this one, or that of PATH.
fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    beside.filter(|path| path.exists()).unwrap_or_else(|| PROGRAM.into())
}

/// Warns, once, if ends wait in the store for an archive that this process does not have.
pub(super) async fn warn_without_archive(store: Store) {
    let status = loop {
        match store.archive_status().await {
            Ok(status) => break status,
            Err(_) => sleep(Duration::from_secs(1)).await,
        }
    };
    if status.settings.is_some() {
        tracing::warn!(
            pending = status.pending,
            "ends of jobs wait for an archive, and RINGBACK_ARCHIVE is not set: set it, or detach the archive with `ringback archive detach`"
        );
    }
}
