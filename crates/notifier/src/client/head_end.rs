//! Tracks where the head of a response of HTTP/1 ends, and which bytes are missing if the connection ends before: some
//! servers send a status and close without an empty line, which other clients accept. Pure.

/// How much of a head has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HeadEnd {
    /// No head is expected, or all of it has been received.
    #[default]
    Behind,
    /// The first line is not whole.
    InStatus,
    /// Within a later line.
    InLine,
    AtLine,
}

impl HeadEnd {
    /// Advances by the bytes that come next.
    pub(super) fn see(&mut self, bytes: &[u8]) {
        for byte in bytes {
            *self = match (*self, byte) {
                (Self::Behind, _) | (Self::AtLine, b'\n') => return *self = Self::Behind,
                (Self::InStatus | Self::InLine, b'\n') | (Self::AtLine, b'\r') => Self::AtLine,
                (Self::InStatus, _) => Self::InStatus,
                (Self::InLine | Self::AtLine, _) => Self::InLine,
            };
        }
    }

    /// The bytes that complete the head, now that the connection has ended; none within the status line, or if the head
    /// is complete. Expects no head afterwards.
    pub(super) fn missing(&mut self) -> &'static [u8] {
        match std::mem::take(self) {
            Self::Behind | Self::InStatus => b"",
            Self::InLine => b"\r\n\r\n",
            Self::AtLine => b"\r\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_ends_early_needs_its_end_and_a_whole_one_nothing() {
        for (text, missing) in [
            ("HTTP/1.1 200 O", ""),
            ("HTTP/1.1 200 OK\r\n", "\r\n"),
            ("HTTP/1.1 200 OK\r\n\r", "\r\n"),
            ("HTTP/1.1 200 OK\nx: 1", "\r\n\r\n"),
            ("HTTP/1.1 200 OK\nx: 1\r\n", "\r\n"),
            ("HTTP/1.1 200 OK\r\nx: 1\r\n\r\nbody\r\n", ""),
            ("HTTP/1.1 200 OK\n\nbody", ""),
        ] {
            for cut in 0..=text.len() {
                let (first, second) = text.as_bytes().split_at(cut);
                let mut end = HeadEnd::InStatus;
                end.see(first);
                end.see(second);
                assert_eq!(end.missing(), missing.as_bytes(), "{text:?} at {cut}");
                assert_eq!(end.missing(), b"", "{text:?}: it is added once");
            }
        }
    }
}
