//! The stream of wake-ups inside one process. A wake-up is published once what it is about is safe.

use ringback_core::contract::Wake;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

/// How many wake-ups a listener may be behind. One that is further behind gets
/// [`Wake::Subscribed`], and so looks at everything.
const BACKLOG: usize = 1024;

/// Where wake-ups are published.
pub(crate) struct WakeBus(Sender<Wake>);

impl Default for WakeBus {
    fn default() -> Self {
        Self(Sender::new(BACKLOG))
    }
}

impl WakeBus {
    pub(crate) fn publish(&self, wake: Wake) {
        // An error means that nobody listens.
        let _ = self.0.send(wake);
    }

    pub(crate) fn listen(&self) -> Wakes {
        Wakes { sender: self.0.clone(), receiver: None }
    }
}

/// A listener's end of the stream.
pub struct Wakes {
    sender: Sender<Wake>,
    /// `None` until the first call.
    receiver: Option<Receiver<Wake>>,
}

impl Wakes {
    pub async fn next(&mut self) -> Wake {
        let Some(receiver) = &mut self.receiver else {
            self.receiver = Some(self.sender.subscribe());
            return Wake::Subscribed;
        };
        match receiver.recv().await {
            Ok(wake) => wake,
            // `sender` keeps the channel open, so the listener fell behind.
            Err(RecvError::Lagged(_) | RecvError::Closed) => {
                *receiver = self.sender.subscribe();
                Wake::Subscribed
            }
        }
    }
}
