//! What TLS connections to a receiver use instead of the usual: a client certificate with its key, and certificate
//! authorities, all in the PEM form (RFC 7468).

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::authorities::Authorities;

/// The PEM texts of an identity. The key is a secret.
#[derive(Clone, Copy)]
pub struct TlsIdentity<'a> {
    /// The client certificate, followed by those between it and its authority; and its private key.
    pub client: Option<(&'a str, &'a str)>,
    /// Certificate authorities that receivers are checked against instead of the usual ones.
    pub ca: Option<&'a str>,
}

/// What is wrong with an identity. It shows nothing of the key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TlsIdentityError {
    #[error("{0}")]
    Certificate(String),
    #[error("{0}")]
    Key(&'static str),
    /// The certificate authorities.
    #[error("{0}")]
    Ca(String),
}

impl TlsIdentity<'_> {
    /// The configuration of connections that use this identity. `usual` are the authorities if it has none of its own.
    ///
    /// # Errors
    /// If a certificate or the key cannot be read or used, or the key is not that of the certificate.
    pub fn config(self, usual: &Authorities) -> Result<ClientConfig, TlsIdentityError> {
        let own = self.ca.map(authorities).transpose()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions =
            ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = versions.expect("the provider has TLS 1.2 and 1.3");
        let builder = own.as_ref().unwrap_or(usual).verify(builder, provider);
        let Some((chain, key)) = self.client else { return Ok(builder.with_no_client_auth()) };
        let chain = certificates(chain).map_err(TlsIdentityError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(unmarked(key))
            .map_err(|_| TlsIdentityError::Key("it is not a private key in the PEM form"))?;
        builder.with_client_auth_cert(chain, key).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                TlsIdentityError::Key("it is not the key of the certificate")
            }
            rustls::Error::General(_) => TlsIdentityError::Key("it is of a kind that is not supported"),
            error => TlsIdentityError::Certificate(error.to_string()),
        })
    }
}

fn authorities(pem: &str) -> Result<Authorities, TlsIdentityError> {
    let mut authorities = Authorities::default();
    for certificate in certificates(pem).map_err(TlsIdentityError::Ca)? {
        authorities.add(certificate).map_err(|error| TlsIdentityError::Ca(error.to_string()))?;
    }
    Ok(authorities)
}

/// The text without a byte order mark, which would hide its first line from the parser.
fn unmarked(pem: &str) -> &[u8] {
    pem.strip_prefix('\u{feff}').unwrap_or(pem).as_bytes()
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(unmarked(pem)).collect::<Result<Vec<_>, _>>();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err("it has no certificate in the PEM form".to_owned()),
        Err(_) => Err("a certificate in it cannot be read".to_owned()),
    }
}
