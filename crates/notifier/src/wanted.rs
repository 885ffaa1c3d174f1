//! Which shards are worth a reserve. Marks come from wake-ups, from answers that said
//! there is more, and all at once from a floor timer, in case a wake-up was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ringback_core::store::{Shard, Wake, Wakes};
use ringback_service::Shutdown;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

/// Every shard is looked at this often at least.
const FLOOR: Duration = Duration::from_secs(5);

/// The marks.
pub(crate) struct Wanted {
    marks: Vec<(Shard, AtomicBool)>,
    cursor: AtomicUsize,
    marked: Notify,
}

impl Wanted {
    pub(crate) fn new(shards: impl Iterator<Item = Shard>) -> Self {
        let marks = shards.map(|shard| (shard, AtomicBool::new(true))).collect();
        Self { marks, cursor: AtomicUsize::new(0), marked: Notify::new() }
    }

    pub(crate) fn mark(&self, shard: Shard) {
        if let Some((_, mark)) = self.marks.get(usize::from(shard.number())) {
            mark.store(true, Ordering::SeqCst);
            self.marked.notify_one();
        }
    }

    pub(crate) fn mark_all(&self) {
        self.marks.iter().for_each(|(_, mark)| mark.store(true, Ordering::SeqCst));
        self.marked.notify_one();
    }

    /// Takes a mark away, the shards in turn. Take it before looking, so that a mark made
    /// meanwhile is not lost.
    pub(crate) fn take(&self) -> Option<Shard> {
        let n = self.marks.len();
        for _ in 0..n {
            let (shard, mark) = &self.marks[self.cursor.fetch_add(1, Ordering::Relaxed) % n];
            if mark.swap(false, Ordering::SeqCst) {
                return Some(*shard);
            }
        }
        None
    }

    /// Waits for a mark; one made since the last wait counts.
    pub(crate) async fn marked(&self) {
        self.marked.notified().await;
    }

    /// Turns wake-ups into marks until the shutdown.
    pub(crate) async fn listen(self: Arc<Self>, mut wakes: Wakes, shutdown: Shutdown) {
        let mut floor = interval(FLOOR);
        floor.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The floor has a task of its own turn: dropping `next` half-way would keep a slow
        // subscription from ever being made.
        let ticks = async {
            loop {
                floor.tick().await;
                self.mark_all();
            }
        };
        let wakes = async {
            loop {
                match wakes.next().await {
                    Wake::Ready(shard) => self.mark(shard),
                    Wake::Subscribed => self.mark_all(),
                    Wake::Due(..) | Wake::Members => {}
                }
            }
        };
        tokio::select! {
            () = ticks => {}
            () = wakes => {}
            () = shutdown.stopping() => {}
        }
    }
}
