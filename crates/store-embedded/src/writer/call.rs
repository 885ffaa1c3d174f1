//! A call on its way through the writer: what it does in the transaction, and who is answered.

use ringback_core::contract::{Shard, StoreError};
use tokio::sync::oneshot;

use crate::error::Result;
use crate::txn::Txn;

/// A call, which may run more than once before it is answered.
pub(crate) trait Call: Send {
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<()>;
    /// Answers the caller with the result of the last run, or with the reason why it failed.
    fn answer(self: Box<Self>, failed: Option<StoreError>);
}

/// A call of a group, and why it failed on its own.
pub(crate) struct Member {
    pub(crate) shard: Shard,
    pub(crate) call: Box<dyn Call>,
    pub(crate) failed: Option<StoreError>,
}

impl Member {
    /// A call of `work`, and where its answer arrives.
    pub(crate) fn new<T: Send + 'static>(
        shard: Shard,
        work: impl FnMut(&mut Txn<'_>) -> Result<T> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Self { shard, call: Box::new(Work { work, done: None, reply }), failed: None }, answer)
    }

    pub(crate) fn answer(self, failed: Option<StoreError>) {
        self.call.answer(failed);
    }
}

struct Work<F, T> {
    work: F,
    /// The result of the last run.
    done: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&mut Txn<'_>) -> Result<T> + Send> Call for Work<F, T> {
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<()> {
        self.done = Some((self.work)(txn)?);
        Ok(())
    }

    fn answer(self: Box<Self>, failed: Option<StoreError>) {
        let answer = match (failed, self.done) {
            (None, Some(done)) => Ok(done),
            (failed, _) => Err(failed.unwrap_or(StoreError::Closed)),
        };
        // An error means that the caller has stopped waiting.
        let _ = self.reply.send(answer);
    }
}
