//! The answers of a receiver: status, headers and body, delays, faults, and scripts that give their order.

use std::time::Duration;

use bytes::Bytes;

#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) after: Duration,
    pub(crate) held: bool,
    /// Bytes behind a response. The connection stays open.
    pub(crate) extra: Bytes,
    pub(crate) end: End,
}

/// How an exchange ends, after the delay.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// A well-formed response.
    Response { status: u16, headers: Vec<(String, String)>, body: Bytes },
    /// Any bytes, after which the connection is closed.
    Raw(Bytes),
    /// The connection is closed without a response.
    Close,
}

impl Answer {
    /// A response with a status and no body.
    pub fn status(status: u16) -> Self {
        Self::of(End::Response { status, headers: Vec::new(), body: Bytes::new() })
    }

    /// No response: the connection is closed.
    pub fn close() -> Self {
        Self::of(End::Close)
    }

    /// Any bytes in place of a response, after which the connection is closed.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::of(End::Raw(bytes.into()))
    }

    fn of(end: End) -> Self {
        Self { after: Duration::ZERO, held: false, extra: Bytes::new(), end }
    }

    /// Adds a header to a response. Panics for other answers.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match &mut self.end {
            End::Response { headers, .. } => headers.push((name.to_owned(), value.to_owned())),
            End::Raw(_) | End::Close => panic!("only a response has headers"),
        }
        self
    }

    /// Sets the body of a response. Panics for other answers.
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        match &mut self.end {
            End::Response { body, .. } => *body = bytes.into(),
            End::Raw(_) | End::Close => panic!("only a response has a body"),
        }
        self
    }

    /// Sends more bytes after a response, and keeps the connection open.
    pub fn with_extra_bytes(mut self, bytes: impl Into<Bytes>) -> Self {
        self.extra = bytes.into();
        self
    }

    /// Answers only after this time.
    pub fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }

    /// Answers only when [`Sink::release`](super::Sink::release) is called.
    pub fn held(mut self) -> Self {
        self.held = true;
        self
    }
}

/// A list of answers in order. The last one repeats.
#[must_use]
#[derive(Clone, Debug)]
pub struct Script {
    first: Vec<(usize, Answer)>,
    last: Answer,
}

impl Script {
    /// The same answer every time.
    pub fn always(answer: Answer) -> Self {
        Self { first: Vec::new(), last: answer }
    }

    /// `answer` for the next `count` requests, then status 200.
    pub fn first(count: usize, answer: Answer) -> Self {
        Self { first: vec![(count, answer)], last: Answer::status(200) }
    }

    /// Adds `answer` for `count` more requests, before the last answer.
    pub fn then(mut self, count: usize, answer: Answer) -> Self {
        self.first.push((count, answer));
        self
    }

    /// Sets the last answer, which repeats.
    pub fn finally(mut self, answer: Answer) -> Self {
        self.last = answer;
        self
    }

    pub(crate) fn next(&mut self) -> Answer {
        while let Some((left, answer)) = self.first.first_mut() {
            if *left > 0 {
                *left -= 1;
                return answer.clone();
            }
            self.first.remove(0);
        }
        self.last.clone()
    }
}

impl From<Answer> for Script {
    fn from(answer: Answer) -> Self {
        Self::always(answer)
    }
}
