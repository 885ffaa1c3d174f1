//! TLS to PostgreSQL.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A connector that trusts the authorities of a file, or those of the system.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn connector(authorities: Option<&Path>) -> anyhow::Result<MakeRustlsConnect> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(file) => {
            let cannot = || format!("{} (RINGBACK_CA_FILE) cannot be read", file.display());
            for certificate in CertificateDer::pem_file_iter(file).with_context(cannot)? {
                roots.add(certificate.with_context(cannot)?).with_context(cannot)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}
