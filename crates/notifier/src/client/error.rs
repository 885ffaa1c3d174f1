//! `PostError`: the reasons why an attempt has no complete response, with their names in the API and the log.

use std::io;

/// ENOMEM, ENFILE, EMFILE and ENOBUFS on Linux: shortages that affect every request.
const OUT_OF_RESOURCES: [i32; 4] = [12, 23, 24, 105];

/// Why there is no complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum PostError {
    Timeout,
    /// The address guard forbids the destination; nothing was sent.
    #[strum(serialize = "forbidden-address")]
    Forbidden,
    /// The name has no address, or no name server answers.
    Dns,
    /// The receiver's machine refuses connections to this port.
    Refused,
    /// No connection for another reason: no route, or it was closed at once.
    Connect,
    /// The TLS handshake failed for another reason than these.
    Tls,
    /// The receiver does not speak TLS on this port.
    NotTls,
    /// Both sides have no version of TLS in common.
    TlsVersion,
    TlsExpired,
    /// The certificate is not valid yet, by the clock of this machine.
    TlsNotYetValid,
    /// The certificate is for another name than that of the URL.
    #[strum(serialize = "tls-wrong-name")]
    TlsName,
    /// The certificate is of an authority that is not trusted.
    #[strum(serialize = "tls-unknown-issuer")]
    TlsIssuer,
    /// The certificate cannot be used for another reason.
    TlsCertificate,
    /// The receiver asks for a client certificate, or does not take the one it was sent.
    TlsClientCertificate,
    /// The head of the response is larger than 32 KiB, or has more than 100 headers.
    HeadTooLarge,
    /// More than 20 interim responses.
    InterimFlood,
    /// Far more bytes than a head and the part of a body that is read.
    ResponseTooLarge,
    Body,
    /// The connection broke.
    Broken,
    /// A connection that had served attempts before ended before any byte of an answer.
    #[strum(serialize = "broken")]
    Ended,
    /// Over HTTP/2 the receiver reset the stream, or sent what it may not.
    #[strum(serialize = "broken")]
    Reset,
    /// Nothing of the request was sent, or the receiver says that it has not processed it.
    Unprocessed,
    /// The response is not HTTP.
    NotHttp,
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
    /// Whether the receiver, or a part of its network, is away or broken. Not so if it sends too much, or if nothing was to
    /// be sent.
    pub(crate) const fn is_outage(self) -> bool {
        match self {
            Self::Timeout
            | Self::Dns
            | Self::Refused
            | Self::Connect
            | Self::Tls
            | Self::NotTls
            | Self::TlsVersion
            | Self::TlsExpired
            | Self::TlsNotYetValid
            | Self::TlsName
            | Self::TlsIssuer
            | Self::TlsCertificate
            | Self::TlsClientCertificate
            | Self::Broken
            | Self::Ended
            | Self::Reset
            | Self::Unprocessed
            | Self::NotHttp => true,
            Self::Forbidden
            | Self::HeadTooLarge
            | Self::InterimFlood
            | Self::ResponseTooLarge
            | Self::Body
            | Self::Ports
            | Self::Crowded
            | Self::Unsigned
            | Self::Local => false,
        }
    }
}

/// Whether this machine is out of file descriptors or memory.
pub(super) fn is_out_of_resources(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| OUT_OF_RESOURCES.contains(&code))
}
