//! Wake-ups inside one process: told once what they tell of is committed.

use std::collections::HashMap;

use ringback_core::contract::Wake;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

/// How many wake-ups a listener may be behind; beyond, it is told to look at everything.
const BACKLOG: usize = 1024;

/// Where wake-ups are told.
pub(crate) struct Hub(Sender<Wake>);

impl Default for Hub {
    fn default() -> Self {
        Self(Sender::new(BACKLOG))
    }
}

impl Hub {
    pub(crate) fn tell(&self, wake: Wake) {
        // Nobody listens: nobody is to be woken.
        let _ = self.0.send(wake);
    }

    pub(crate) fn listen(&self) -> Wakes {
        Wakes { sender: self.0.clone(), receiver: None }
    }
}

/// The stream of wake-ups.
pub struct Wakes {
    sender: Sender<Wake>,
    /// None until the first call, and after the listener fell behind.
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
            // The sender above keeps the channel open, so this is a listener that fell behind.
            Err(RecvError::Lagged(_) | RecvError::Closed) => {
                *receiver = self.sender.subscribe();
                Wake::Subscribed
            }
        }
    }
}

/// When each shard's carrier will look again, in ms; a moment before that is told. Known
/// since the process started: before its first pass a carrier is told of every moment.
pub(crate) type Plan = HashMap<u16, u64>;
