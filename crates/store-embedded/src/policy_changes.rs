//! The stream of changes to policies inside one process. A change is published once it is safe.

use tokio::sync::watch;

/// A listener's end of the stream. The first call returns at once.
pub struct PolicyChanges {
    changed: watch::Receiver<()>,
    is_new: bool,
}

impl PolicyChanges {
    pub(crate) fn new(changes: &watch::Sender<()>) -> Self {
        Self { changed: changes.subscribe(), is_new: true }
    }

    pub async fn next(&mut self) {
        if std::mem::take(&mut self.is_new) {
            return;
        }
        if self.changed.changed().await.is_err() {
            // The store is gone, so no more changes will come.
            std::future::pending::<()>().await;
        }
    }
}
