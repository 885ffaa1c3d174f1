//! The archive of `ringback up`: starts an archiver as a child process, which writes to the database, and sends ended
//! jobs to it through a pipe. So `ringback` needs no database drivers, and the embedded store stays in one process.

use ringback_archive::pipe::{ChildProgram, ChildSink, Source};
use ringback_archive::{Config, SETTINGS, start};
use ringback_service::{Context, Lookup, Tasks};
use ringback_store::Store;
use tokio::time::{Duration, sleep};

/// The archive, and the child that has its database.
pub(super) struct Archive {
    config: Config,
    child: ChildProgram,
}

impl Archive {
    /// Reads the settings of the archive; `None` without one.
    pub(super) fn load(lookup: &mut Lookup) -> Option<Self> {
        let config = Config::load(lookup)?;
        let names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
        Some(Self { config, child: ChildProgram::new(lookup, &names, Source::Pipe) })
    }

    pub(super) fn start(self, store: &Store, context: &Context, tasks: &mut Tasks) {
        // Deliveries go on without the database.
        start(store, &self.config, vec![ChildSink::new(self.child)], false, context, tasks);
    }
}

/// Logs a warning, once, if an archive is attached to the store, which this process does not have. Waits until the
/// store answers.
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
            "ended jobs wait for an archive, and RINGBACK_ARCHIVE is not set: set it, or detach the archive with `ringback archive detach`"
        );
    }
}
