//! TLS to a server: the authorities that it is trusted by, and the certificate of this process, as files give them.
//! They are read once, at the start.

use std::fs;
use std::sync::Arc;

use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, TlsCertificates};
use ringback_core::encoding::without_mark;
use ringback_core::store_types::{StoreError, StoreTls};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::error::unfit;

/// Reads a file with the certificates of authorities.
pub fn authorities(file: &str) -> Result<Vec<u8>, String> {
    let text = read(file)?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&text)? {
        roots.add(certificate).map_err(|error| format!("has a certificate that cannot be used: {error}"))?;
    }
    Ok(text)
}

/// Reads a file with a certificate and those up to its authority.
pub fn certificate(file: &str) -> Result<Vec<u8>, String> {
    let text = read(file)?;
    certificates(&text)?;
    Ok(text)
}

/// Reads a file with a private key. An error has nothing of the file.
pub fn key(file: &str) -> Result<Vec<u8>, String> {
    let text = read(file)?;
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(not_pem("private key", &error)),
    }
}

/// Checks that a key belongs to a certificate.
pub fn fit(certificate: &[u8], key: &[u8]) -> Result<(), String> {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    let (Ok(chain), Ok(key)) = (chain, PrivateKeyDer::from_pem_slice(key)) else { return Ok(()) };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?.with_root_certificates(RootCertStore::empty());
    let fits = config.with_client_auth_cert(chain, key);
    fits.map(drop).map_err(|error| format!("does not belong to the certificate: {error}"))
}

/// How to connect to a server, with what is set for TLS.
pub(super) fn with(info: ConnectionInfo, tls: &StoreTls) -> Result<ConnectionInfo, StoreError> {
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) || *tls == StoreTls::default() {
        return Ok(info);
    }
    let client_tls = tls.identity.clone();
    let client_tls = client_tls.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
    let certificates = TlsCertificates { client_tls, root_cert: tls.authorities.clone() };
    let client = Client::build_with_tls(info, certificates).map_err(|error| unfit(&error))?;
    Ok(client.get_connection_info().clone())
}

fn read(file: &str) -> Result<Vec<u8>, String> {
    let text = fs::read(file).map_err(|error| format!("cannot be read: {error}"))?;
    without_mark(&text).map(<[u8]>::to_vec).map_err(|error| format!("cannot be used: {error}"))
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if found.is_empty() => Err("has no certificate in PEM form".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(not_pem("certificate", &error)),
    }
}

fn not_pem(what: &str, error: &PemError) -> String {
    match error {
        PemError::NoItemsFound => format!("has no {what} in PEM form"),
        error => format!("has no {what} that can be read: {error}"),
    }
}
