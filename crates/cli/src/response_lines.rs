//! Reads a response of one JSON document per line (NDJSON) as it arrives, for backups and restores.

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use ringback_core::job::MAX_JOB;

use crate::client::{ClientError, cut_off};

/// The longest line, in bytes.
const MAX_LINE: usize = 2 * MAX_JOB;

/// The lines of a response. A response that ends early is an error.
pub(crate) struct ResponseLines {
    response: Response,
    /// What has arrived and is not returned yet.
    buffer: BytesMut,
    /// The bytes at the start of the buffer that have no line break.
    searched: usize,
}

impl ResponseLines {
    /// The lines of a response whose body was not read yet.
    pub(crate) fn new(response: Response) -> Self {
        Self { response, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line without its line break; `None` after the last.
    ///
    /// # Errors
    /// When the connection breaks, the response ends within a line, or a line is longer than [`MAX_LINE`].
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            if let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let mut line = self.buffer.split_to(self.searched + at + 1);
                line.truncate(self.searched + at);
                self.searched = 0;
                return Ok(Some(line.freeze()));
            }
            self.searched = self.buffer.len();
            if self.searched > MAX_LINE {
                return Err(ClientError::Unreadable(format!("a line has more than {MAX_LINE} bytes")));
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.buffer.extend_from_slice(&chunk),
                Ok(None) if self.buffer.is_empty() => return Ok(None),
                Ok(None) => return Err(ClientError::CutOff { why: "the last line has no end".to_owned() }),
                Err(error) => return Err(cut_off(&error)),
            }
        }
    }
}
