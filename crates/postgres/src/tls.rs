//! TLS to PostgreSQL: authorities, client certificate, and which names a certificate may have.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use ringback_core::connection_url::{PostgresUrl, RootCertificates, SslMode};
use ringback_core::encoding::without_mark;
use ringback_secrets::{Authorities, AuthoritiesFileError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A connector that trusts the authorities of the URL, else those of the file of the process, else those of the system.
/// The connector has the URL's client certificate. With `verify-ca`, the server's certificate may have any name.
///
/// # Errors
/// Which file cannot be read or used, and why.
pub(crate) fn connector(url: &PostgresUrl, authorities: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let authorities = match (&url.roots, authorities) {
        (Some(RootCertificates::File(file)), _) => of_file(file, "sslrootcert").map_err(|why| {
            format!("{why}; without it RINGBACK_CA_FILE counts, and without that the system's authorities")
        })?,
        (None, Some(file)) => of_file(file, "RINGBACK_CA_FILE")?,
        (Some(RootCertificates::System), _) | (None, None) => {
            Authorities::of_system(rustls_native_certs::load_native_certs().certs)
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let config = config.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let config = if url.ssl_mode == SslMode::VerifyCa {
        let verifier = authorities.verifier(provider).map_err(|error| error.to_string())?;
        config.dangerous().with_custom_certificate_verifier(Arc::new(AnyName(verifier)))
    } else {
        authorities.verify(config, provider)
    };
    let config = match &url.identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate, "sslcert")?;
            let read = PrivateKeyDer::from_pem_slice(&text(key, "sslkey")?)
                .map_err(|error| cannot(key, "sslkey", &AuthoritiesFileError::NotPem(error)))?;
            let config = config.with_client_auth_cert(chain, read);
            config.map_err(|error| {
                format!("{} and {} (sslkey) do not fit: {error}", certificate.display(), key.display())
            })?
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn of_file(file: &Path, setting: &str) -> Result<Authorities, String> {
    Authorities::of_file(file).map_err(|why| cannot(file, setting, &why))
}

fn certificates(file: &Path, setting: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_slice_iter(&text(file, setting)?).collect::<Result<Vec<_>, _>>();
    match read {
        Ok(chain) if chain.is_empty() => Err(cannot(file, setting, &AuthoritiesFileError::Empty)),
        Ok(chain) => Ok(chain),
        Err(error) => Err(cannot(file, setting, &AuthoritiesFileError::NotPem(error))),
    }
}

fn text(file: &Path, setting: &str) -> Result<Vec<u8>, String> {
    let text =
        fs::read(file).map_err(|error| cannot(file, setting, &AuthoritiesFileError::Unreadable(error)))?;
    let text =
        without_mark(&text).map_err(|error| cannot(file, setting, &AuthoritiesFileError::Encoding(error)))?;
    Ok(text.to_vec())
}

fn cannot(file: &Path, setting: &str, why: &AuthoritiesFileError) -> String {
    format!("{} ({setting}) {why}", file.display())
}

/// Verifies a certificate as usual, except for the name in it.
#[derive(Debug)]
struct AnyName(Arc<dyn ServerCertVerifier>);

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
