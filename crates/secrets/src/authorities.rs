//! The certificate authorities that receivers are trusted by. A certificate that is named as one may also be that of the
//! receiver itself, as self-signed ones are.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, WantsVerifier,
};

/// Certificate authorities.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: Arc<RootCertStore>,
    /// Those that may be of a receiver itself.
    named: Vec<CertificateDer<'static>>,
}

impl Default for Authorities {
    fn default() -> Self {
        Self::of_system(Vec::new())
    }
}

impl Authorities {
    /// The certificate authorities of the system. A certificate that cannot be used is left out.
    #[must_use]
    pub fn of_system(certificates: Vec<CertificateDer<'static>>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates);
        Self { roots: Arc::new(roots), named: Vec::new() }
    }

    /// Adds one that somebody has named.
    ///
    /// # Errors
    /// When it is not a certificate that can be used.
    pub fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), Error> {
        Arc::make_mut(&mut self.roots).add(certificate.clone())?;
        self.named.push(certificate);
        Ok(())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Has the certificates of receivers checked against these.
    pub(crate) fn verify(
        &self,
        builder: ConfigBuilder<ClientConfig, WantsVerifier>,
        provider: Arc<CryptoProvider>,
    ) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        let roots = Arc::clone(&self.roots);
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider).build();
        match usual {
            Ok(usual) if !self.named.is_empty() => {
                let verifier = NamedVerifier { usual, named: self.named.clone() };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
            Ok(_) | Err(_) => builder.with_root_certificates(roots),
        }
    }
}

/// Trusts what the usual verifier trusts, and a receiver whose own certificate is named.
#[derive(Debug)]
struct NamedVerifier {
    usual: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for NamedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let usual = self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let Err(Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_))) =
            &usual
        else {
            return usual;
        };
        // It is an authority (`Other`), or signed by one that is not named. The time was checked before that.
        if !self.named.iter().any(|named| named == end_entity) {
            return usual;
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
