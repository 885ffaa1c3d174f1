//! Certificate authorities that servers (receivers and databases) are checked against: those of the system, or of a
//! file. A certificate of a file may also be that of the server itself, as self-signed ones are.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use ringback_core::encoding::{OtherEncoding, without_mark};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WantsClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
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
    /// Certificates that may be of a server itself.
    named: Vec<CertificateDer<'static>>,
}

/// Why a file has no certificate authorities.
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesFileError {
    /// It is not there, or may not be read.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// It is not in UTF-8.
    #[error("cannot be used: {0}")]
    Encoding(OtherEncoding),
    /// It is not in the PEM form (RFC 7468).
    #[error("is not in the PEM form: {0}")]
    NotPem(PemError),
    /// A certificate in the file is not valid as an authority.
    #[error("has a certificate that cannot be used: {0}")]
    Unusable(Error),
    #[error("has no certificate in the PEM form")]
    Empty,
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

    /// Reads the certificate authorities of a file in the PEM form.
    ///
    /// # Errors
    /// If the file cannot be read, is not PEM, has a certificate that cannot be used, or has none.
    pub fn of_file(file: &Path) -> Result<Self, AuthoritiesFileError> {
        let text = fs::read(file).map_err(AuthoritiesFileError::Unreadable)?;
        let text = without_mark(&text).map_err(AuthoritiesFileError::Encoding)?;
        let mut authorities = Self::default();
        for certificate in CertificateDer::pem_slice_iter(text) {
            let certificate = certificate.map_err(AuthoritiesFileError::NotPem)?;
            authorities.add(certificate).map_err(AuthoritiesFileError::Unusable)?;
        }
        if authorities.is_empty() { Err(AuthoritiesFileError::Empty) } else { Ok(authorities) }
    }

    /// Adds a certificate that settings name: an authority, or a server's own.
    ///
    /// # Errors
    /// When it is not a certificate that can be used.
    pub fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), Error> {
        Arc::make_mut(&mut self.roots).add(certificate.clone())?;
        self.named.push(certificate);
        Ok(())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// A verifier that checks the certificates of servers against these authorities.
    ///
    /// # Errors
    /// If there are no authorities.
    pub fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, VerifierBuilderError> {
        let roots = Arc::clone(&self.roots);
        let usual = WebPkiServerVerifier::builder_with_provider(roots, provider).build()?;
        if self.named.is_empty() {
            return Ok(usual);
        }
        Ok(Arc::new(NamedVerifier { usual, named: self.named.clone() }))
    }

    /// Makes clients check the certificates of servers against these authorities; without any, they trust no server.
    pub fn verify(
        &self,
        builder: ConfigBuilder<ClientConfig, WantsVerifier>,
        provider: Arc<CryptoProvider>,
    ) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        match self.verifier(provider) {
            Ok(verifier) => builder.dangerous().with_custom_certificate_verifier(verifier),
            Err(_) => builder.with_root_certificates(RootCertStore::empty()),
        }
    }
}

/// Trusts what the usual verifier trusts, and a server whose own certificate is named.
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
