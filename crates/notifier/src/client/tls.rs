//! The TLS of callbacks: the system's certificate authorities, or those of a file, and HTTP/2 where the receiver
//! offers it. A credential can bring a client certificate and authorities of its own.

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

/// Its name in ALPN (RFC 7301).
const HTTP_2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

/// What is needed for connections with TLS; nothing on a system without certificate authorities, which is enough for
/// plain HTTP.
pub(super) struct Tls {
    roots: Authorities,
    connector: Option<TlsConnector>,
}

impl Tls {
    /// With the certificate authorities of the system.
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

    /// With the certificate authorities of this file instead of the system's.
    pub(super) fn with_authorities(file: &Path) -> anyhow::Result<Self> {
        let read = Authorities::of_file(file);
        Ok(Self::with(read.map_err(|why| anyhow!("{} (RINGBACK_CA_FILE) {why}", file.display()))?))
    }

    fn with(roots: Authorities) -> Self {
        let usual = TlsIdentity { client: None, ca: None };
        let connector = usual.config(&roots).ok().filter(|_| !roots.is_empty()).map(connector);
        Self { roots, connector }
    }

    /// One that uses an identity, and these authorities if that has none.
    ///
    /// # Errors
    /// If the identity cannot be used.
    pub(super) fn with_identity(&self, identity: &Identity) -> Result<Self, TlsIdentityError> {
        let client = identity.client.as_ref().map(|client| (&*client.chain, &*client.key));
        let identity = TlsIdentity { client, ca: identity.ca.as_deref() };
        let has_authorities = identity.ca.is_some() || !self.roots.is_empty();
        let config = identity.config(&self.roots)?;
        Ok(Self { roots: self.roots.clone(), connector: has_authorities.then(|| connector(config)) })
    }

    /// Makes a connection to a host a TLS one.
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

/// What the receiver says (RFC 8446, section 6.2).
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
