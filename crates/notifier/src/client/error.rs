//! Why an attempt has no complete response.

use std::io;

/// ENOMEM, ENFILE, EMFILE and ENOBUFS on Linux: shortages that affect every request.
const OUT_OF_RESOURCES: [i32; 4] = [12, 23, 24, 105];

/// Why there is no complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostError {
    /// The timeout is over.
    Timeout,
    /// The address guard forbids the destination; nothing was sent.
    Forbidden,
    /// The name has no address, or no name server answers.
    Dns,
    /// The receiver's machine refuses connections to this port.
    Refused,
    /// No connection for another reason: no route, or it was closed at once.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The head of the response is larger than 32 KiB, or has more than 100 headers.
    HeadTooLarge,
    /// More than 20 interim responses.
    InterimFlood,
    /// Far more bytes than a head and the part of a body that is read.
    ResponseTooLarge,
    /// The body is incomplete.
    Body,
    /// The connection broke, or the response is not HTTP.
    Broken,
    /// This machine has no free port for this destination; nothing was sent.
    Ports,
    /// Calls that hang hold too many places at the receiver's address; nothing was sent.
    Crowded,
    /// A secret that signs it, or a credential, cannot be opened; nothing was sent.
    Unsigned,
    /// This machine is out of file descriptors or memory; nothing was sent.
    Local,
}

impl PostError {
    /// Returns the name used in the API and the log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Forbidden => "forbidden-address",
            Self::Dns => "dns",
            Self::Refused => "refused",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::HeadTooLarge => "head-too-large",
            Self::InterimFlood => "interim-flood",
            Self::ResponseTooLarge => "response-too-large",
            Self::Body => "body",
            Self::Broken => "broken",
            Self::Ports => "ports",
            Self::Crowded => "crowded",
            Self::Unsigned => "unsigned",
            Self::Local => "local",
        }
    }
}

/// Whether this machine is out of file descriptors or memory.
pub(super) fn is_out_of_resources(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| OUT_OF_RESOURCES.contains(&code))
}
