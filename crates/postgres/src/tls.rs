//! TLS to PostgreSQL.

use std::path::Path;
use std::sync::Arc;

use ringback_core::connection_url::{PostgresUrl, RootCertificates, SslMode};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A connector that trusts the authorities of the URL, else those of the file of the process, else those of the system.
///
/// # Errors
/// Which file cannot be read.
pub(crate) fn connector(url: &PostgresUrl, authorities: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let roots = Arc::new(match (&url.roots, authorities) {
        (Some(RootCertificates::File(file)), _) => of_file(file, "sslrootcert")?,
        (None, Some(file)) => of_file(file, "RINGBACK_CA_FILE")?,
        (Some(RootCertificates::System), _) | (None, None) => of_system(),
    });
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let config = config.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let config = if url.ssl_mode == SslMode::VerifyCa {
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|error| error.to_string())?;
        config.dangerous().with_custom_certificate_verifier(Arc::new(AnyName(verifier)))
    } else {
        config.with_root_certificates(roots)
    };
    let config = match &url.identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate, "sslcert")?;
            let read = PrivateKeyDer::from_pem_file(key).map_err(|error| cannot(key, "sslkey", &error))?;
            let config = config.with_client_auth_cert(chain, read);
            config.map_err(|error| {
                format!("{} and {} (sslkey) do not fit: {error}", certificate.display(), key.display())
            })?
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn of_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn of_file(file: &Path, setting: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file, setting)? {
        let added = roots.add(certificate);
        added.map_err(|error| {
            format!("{} ({setting}) has a certificate that cannot be used: {error}", file.display())
        })?;
    }
    Ok(roots)
}

fn certificates(file: &Path, setting: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| cannot(file, setting, &error))?;
    if read.is_empty() {
        return Err(format!("{} ({setting}) has no certificate in PEM form", file.display()));
    }
    Ok(read)
}

fn cannot(file: &Path, setting: &str, error: &PemError) -> String {
    format!(
        "{} ({setting}) cannot be read: {error}; without it RINGBACK_CA_FILE counts, and else the system",
        file.display()
    )
}

/// Verifies a certificate as ever, but for the name in it.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // The name is what is looked at last.
        match self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
