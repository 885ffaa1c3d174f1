//! TLS to a server: reads and checks the files with trusted authorities and with the certificate and the key of this
//! process, and adds them to a connection. Files are read once, at the start.

use std::fs;
use std::sync::Arc;

use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, TlsCertificates};
use ringback_core::encoding::without_mark;
use ringback_core::store_types::{StoreError, StoreTls};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::error::unfit;

/// Returns the content of a file with certificates of authorities. Fails with a text if it has none that can be used.
pub fn authorities(file: &str) -> Result<Vec<u8>, String> {
    let text = read(file)?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&text)? {
        roots.add(certificate).map_err(|error| format!("has a certificate that cannot be used: {error}"))?;
    }
    Ok(text)
}

/// Returns the content of a file with a certificate and those up to its authority. Fails with a text if it has none.
pub fn certificate(file: &str) -> Result<Vec<u8>, String> {
    let text = read(file)?;
    certificates(&text)?;
    Ok(text)
}

/// Returns the content of a file with a private key. Fails with a text that shows nothing of the file if it has none.
pub fn key(file: &str) -> Result<Vec<u8>, String> {
    let text = read(file)?;
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(not_pem("private key", &error)),
    }
}

/// Checks that a key belongs to a certificate; fails with a text if not. What cannot be read counts as fitting here.
pub fn fit(certificate: &[u8], key: &[u8]) -> Result<(), String> {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    let (Ok(chain), Ok(key)) = (chain, PrivateKeyDer::from_pem_slice(key)) else { return Ok(()) };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?.with_root_certificates(RootCertStore::empty());
    let fits = config.with_client_auth_cert(chain, key);
    fits.map(drop).map_err(|error| format!("does not belong to the certificate: {error}"))
}

/// Returns how to connect to a server, with authorities, certificate and key added; unchanged for a URL without TLS.
/// Fails with `Unfit` if the client cannot use them.
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
