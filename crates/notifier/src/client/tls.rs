//! The TLS of callbacks: trusts the system's certificate authorities, or those of a file, offers HTTP/2, and uses the
//! client certificate and the authorities of a credential. Also maps errors of TLS to a [`PostError`].

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use ringback_secrets::{Authorities, TlsIdentity, TlsIdentityError};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, InvalidMessage, PeerIncompatible};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::PostError;
use super::metered::MeteredStream;
use crate::credentials::Identity;

/// The names of the versions of HTTP in ALPN (RFC 7301).
const HTTP_2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

/// What is needed for connections with TLS; nothing on a system without certificate authorities, which is enough for
/// plain HTTP.
pub(super) struct Tls {
    roots: Authorities,
    connector: Option<TlsConnector>,
}

impl Tls {
    /// TLS with the certificate authorities of the system. Logs a warning if there are none, or one cannot be read.
    pub(super) fn of_system() -> Self {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate authority of the system cannot be read");
        }
        let roots = Authorities::of_system(found.certs);
        if roots.is_empty() {
            tracing::warn!("{NoAuthorities}");
        }
        Self::with(roots)
    }

    /// TLS with the certificate authorities of a file. Fails if it cannot be read or has none.
    pub(super) fn with_authorities(file: &Path) -> anyhow::Result<Self> {
        let read = Authorities::of_file(file);
        Ok(Self::with(read.map_err(|why| anyhow!("{} (RINGBACK_CA_FILE) {why}", file.display()))?))
    }

    fn with(roots: Authorities) -> Self {
        let usual = TlsIdentity { client: None, ca: None };
        let connector = usual.config(&roots).ok().filter(|_| !roots.is_empty()).map(connector);
        Self { roots, connector }
    }

    /// TLS that uses an identity, with the authorities of `self` if the identity has none.
    ///
    /// # Errors
    /// If the certificates or the key of the identity cannot be used.
    pub(super) fn with_identity(&self, identity: &Identity) -> Result<Self, TlsIdentityError> {
        let client = identity.client.as_ref().map(|client| (&*client.chain, &*client.key));
        let identity = TlsIdentity { client, ca: identity.ca.as_deref() };
        let has_authorities = identity.ca.is_some() || !self.roots.is_empty();
        let config = identity.config(&self.roots)?;
        Ok(Self { roots: self.roots.clone(), connector: has_authorities.then(|| connector(config)) })
    }

    /// Does the TLS handshake with a host. Fails if that does, there are no authorities, or the host has no valid name.
    pub(super) async fn connect(
        &self,
        host: &str,
        stream: MeteredStream,
    ) -> io::Result<TlsStream<MeteredStream>> {
        let connector = self.connector.as_ref().ok_or_else(|| io::Error::other(NoAuthorities))?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        connector.connect(name, stream).await
    }
}

/// Why TLS failed; `None` if this is not an error of TLS.
pub(super) fn refused(error: &io::Error) -> Option<PostError> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match error {
        rustls::Error::InvalidCertificate(error) => of_certificate(error),
        rustls::Error::AlertReceived(alert) => of_alert(*alert),
        rustls::Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => PostError::TlsVersion,
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => PostError::NotTls,
        _ => PostError::Tls,
    })
}

fn of_certificate(error: &CertificateError) -> PostError {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => PostError::TlsExpired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            PostError::TlsNotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            PostError::TlsName
        }
        CertificateError::UnknownIssuer => PostError::TlsIssuer,
        _ => PostError::TlsCertificate,
    }
}

/// The error that an alert of the receiver means (RFC 8446, section 6.2).
const fn of_alert(alert: AlertDescription) -> PostError {
    match alert {
        AlertDescription::ProtocolVersion => PostError::TlsVersion,
        AlertDescription::CertificateRequired
        | AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied => PostError::TlsClientCertificate,
        _ => PostError::Tls,
    }
}

/// Whether both sides agreed on HTTP/2.
pub(super) fn is_http2(stream: &TlsStream<MeteredStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP_2)
}

fn connector(mut config: ClientConfig) -> TlsConnector {
    config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1_1.to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// The system has no certificate authorities.
#[derive(Debug, thiserror::Error)]
#[error(
    "this system has no certificate authorities, so receivers on https are not called: install its package of them \
    (ca-certificates), or name a file in the PEM form with RINGBACK_CA_FILE, and start this process again"
)]
struct NoAuthorities;
