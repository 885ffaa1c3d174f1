//! `Beginning`: the first bytes of a connection must arrive in time. The server of HTTP/2 waits for the preface of a
//! client without a limit of its own.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// The first bytes of a connection, and until when they must have arrived.
pub(super) struct Beginning {
    /// How many must arrive still.
    missing: usize,
    late: Pin<Box<Sleep>>,
}

impl Beginning {
    /// The first `bytes` must arrive `within` this time from now.
    pub(super) fn new(bytes: usize, within: Duration) -> Self {
        Self { missing: bytes, late: Box::pin(sleep(within)) }
    }

    /// Turns a read that has waited too long for them into an error. `arrived` is how many bytes it has read.
    pub(super) fn check(
        &mut self,
        cx: &mut Context<'_>,
        arrived: usize,
        read: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        self.missing = self.missing.saturating_sub(arrived);
        if self.missing > 0 && read.is_pending() && self.late.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(ErrorKind::TimedOut.into()));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, interval};

    use super::super::write_timeout::WriteTimeout;
    use super::*;

    const WITHIN: Duration = Duration::from_secs(75);

    #[tokio::test(start_paused = true)]
    async fn a_beginning_that_drips_is_cut_off_in_time() {
        let (ours, mut theirs) = duplex(64);
        let drip = async move {
            let mut seconds = interval(Duration::from_secs(10));
            while theirs.write_all(b"P").await.is_ok() {
                seconds.tick().await;
            }
        };
        let (mut ours, start) =
            (WriteTimeout::new(ours, WITHIN).with_beginning(Beginning::new(24, WITHIN)), Instant::now());
        let mut all = Vec::new();
        let read = async move { ours.read_to_end(&mut all).await };
        let (error, ()) = tokio::join!(read, drip);
        assert_eq!((error.unwrap_err().kind(), start.elapsed() >= WITHIN), (ErrorKind::TimedOut, true));
        assert!(start.elapsed() < 2 * WITHIN);
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_begun_may_be_silent() {
        let (ours, mut theirs) = duplex(64);
        theirs.write_all(&[b'x'; 24]).await.unwrap();
        let mut ours = WriteTimeout::new(ours, WITHIN).with_beginning(Beginning::new(24, WITHIN));
        ours.read_exact(&mut [0; 24]).await.unwrap();
        assert!(tokio::time::timeout(10 * WITHIN, ours.read_u8()).await.is_err(), "it waits");
    }
}
