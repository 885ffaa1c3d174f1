//! TLS of a server: its settings, the certificate and the key of files, which are read again once their content has
//! changed, and the authorities of client certificates.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ringback_core::encoding::without_mark;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::config::{Lookup, Setting};

/// The name of HTTP/1.1 in ALPN (RFC 7301).
const HTTP_1_1: &[u8] = b"http/1.1";
/// How old what was read may be when a connection comes. Then the files are read again.
const READ_EVERY: Duration = Duration::from_secs(5);

/// The settings of TLS, which the API and the admin port share.
pub(crate) const SETTINGS: [Setting; 4] = [
    Setting::new(
        "TLS_CERT",
        "",
        "File (PEM) with the certificate chain of the API, its own first; with it the API speaks https only. Read again when it changes",
    ),
    Setting::new("TLS_KEY", "", "File (PEM) with the private key of that certificate"),
    Setting::new(
        "TLS_CLIENT_CA",
        "",
        "File (PEM) with certificate authorities: callers then need a client certificate that one of these has signed. Empty: no client certificate is asked for",
    ),
    Setting::new(
        "ADMIN_TLS",
        "off",
        "Whether the admin port has the same TLS, client certificates included: on or off",
    ),
];

/// The TLS of a server. Clones share it.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    files: Files,
    config: RwLock<Arc<ServerConfig>>,
    last: Mutex<Last>,
}

/// What was read last.
struct Last {
    at: Instant,
    /// `None` if it could not be read.
    content: Option<Content>,
}

#[derive(Clone, Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    authorities: Option<PathBuf>,
}

#[derive(PartialEq, Eq)]
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the settings and the files; `None` without a certificate, or with a mistake, which is recorded.
    pub fn load(lookup: &mut Lookup) -> Option<Self> {
        let mut file = |name| Some(lookup.text(name)).filter(|text| !text.is_empty()).map(PathBuf::from);
        let (certificate, key, authorities) = (file("TLS_CERT"), file("TLS_KEY"), file("TLS_CLIENT_CA"));
        let (certificate, key) = match (certificate, key) {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) => {
                if authorities.is_some() {
                    lookup.reject("TLS_CLIENT_CA", "needs TLS_CERT and TLS_KEY: set them too, or unset it");
                }
                return None;
            }
            (Some(_), None) => {
                lookup.reject("TLS_CERT", "needs TLS_KEY, the file with its private key");
                return None;
            }
            (None, Some(_)) => {
                lookup.reject("TLS_KEY", "needs TLS_CERT, the file with its certificate");
                return None;
            }
        };
        let files = Files { certificate, key, authorities };
        match files.read().and_then(|content| Ok((content.config()?, content))) {
            Ok((config, content)) => {
                let last = Last { at: Instant::now(), content: Some(content) };
                let (config, last) = (RwLock::new(Arc::new(config)), Mutex::new(last));
                Some(Self(Arc::new(Shared { files, config, last })))
            }
            Err((name, why)) => {
                lookup.reject(name, why);
                None
            }
        }
    }

    /// Whether callers need a certificate.
    #[must_use]
    pub fn asks_for_certificates(&self) -> bool {
        self.0.files.authorities.is_some()
    }

    /// The TLS of the admin port; `None` if it has none, or with a mistake, which is recorded.
    pub(crate) fn load_of_admin(lookup: &mut Lookup) -> Option<Self> {
        let tls = lookup.is_on("ADMIN_TLS").then(|| Self::load(lookup))?;
        if tls.is_none() {
            lookup.reject("ADMIN_TLS", "needs a certificate: set TLS_CERT and TLS_KEY");
        }
        tls
    }

    /// What accepts a TLS connection, with the files as they are now or were a few seconds ago.
    pub(super) async fn acceptor(&self) -> TlsAcceptor {
        self.renew().await;
        let config = self.0.config.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&config))
    }

    /// Reads the files again if [`READ_EVERY`] has passed and nobody does so now. Unusable files change nothing.
    async fn renew(&self) {
        // Whoever comes meanwhile takes what there is.
        let Ok(mut last) = self.0.last.try_lock() else { return };
        if last.at.elapsed() >= READ_EVERY {
            self.read(&mut last).await;
        }
    }

    /// Reads the files again now.
    pub(super) async fn read_again(&self) {
        self.read(&mut *self.0.last.lock().await).await;
    }

    async fn read(&self, last: &mut Last) {
        last.at = Instant::now();
        let files = self.0.files.clone();
        let Ok(read) = tokio::task::spawn_blocking(move || files.read()).await else { return };
        let found = match read {
            Ok(content) if last.content.as_ref() == Some(&content) => return,
            Ok(content) => {
                let config = content.config();
                last.content = Some(content);
                config
            }
            // It is said once, not at each look.
            Err(_) if last.content.is_none() => return,
            Err(why) => {
                last.content = None;
                Err(why)
            }
        };
        match found {
            Ok(config) => {
                *self.0.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
                tracing::info!(certificate = %self.0.files.certificate.display(), "the certificate was read again");
            }
            Err((name, why)) => {
                tracing::warn!(
                    "RINGBACK_{name}: {why}; connections go on with the certificate that was read before"
                );
            }
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.files.fmt(f)
    }
}

/// The setting that is wrong, and why.
type Mistake = (&'static str, String);

impl Files {
    fn read(&self) -> Result<Content, Mistake> {
        let read = |name, path: &Path| {
            let text = fs::read(path).map_err(|why| (name, format!("cannot be read: {why}")))?;
            let text = without_mark(&text).map_err(|why| (name, format!("cannot be used: {why}")))?;
            Ok(text.to_vec())
        };
        let authorities = self.authorities.as_deref().map(|path| read("TLS_CLIENT_CA", path)).transpose()?;
        Ok(Content {
            certificate: read("TLS_CERT", &self.certificate)?,
            key: read("TLS_KEY", &self.key)?,
            authorities,
        })
    }
}

impl Content {
    /// The configuration: TLS 1.2 and 1.3, HTTP/1.1, client certificates if it has authorities. Errors name a setting.
    fn config(&self) -> Result<ServerConfig, Mistake> {
        let chain = certificates("TLS_CERT", &self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.map_err(|why| ("TLS_KEY", format!("has no private key in the PEM form: {why}")))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.expect("the provider has TLS 1.2 and 1.3");
        let builder = match &self.authorities {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                let mistake = |why: &dyn fmt::Display| ("TLS_CLIENT_CA", format!("cannot be used: {why}"));
                let mut roots = RootCertStore::empty();
                for authority in certificates("TLS_CLIENT_CA", authorities)? {
                    roots.add(authority).map_err(|why| mistake(&why))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|why| mistake(&why))?)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|why| ("TLS_CERT", format!("cannot be used with the key of TLS_KEY: {why}")))?;
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        Ok(config)
    }
}

fn certificates(name: &'static str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Mistake> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|why| (name, format!("is not in the PEM form: {why}")))?;
    if all.is_empty() { Err((name, "has no certificate in the PEM form".to_owned())) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::load_from;

    const GROUPS: &[&[Setting]] = &[&[Setting::new("ADMIN_LISTEN", "127.0.0.1:7412", "The admin port")]];

    fn file(name: &str) -> String {
        format!("{}/../../tests/tls/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    fn mistakes(variables: &[(&str, &str)]) -> Vec<String> {
        load_from(GROUPS, variables, |lookup| (Tls::load(lookup), Tls::load_of_admin(lookup))).1
    }

    #[test]
    fn a_certificate_needs_its_key_and_both_must_be_usable() {
        let [api, key, other, authority] = ["api.pem", "api.key", "caller.key", "authority.pem"].map(file);
        assert_eq!(mistakes(&[]), [""; 0]);
        assert_eq!(mistakes(&[("TLS_CERT", &api), ("TLS_KEY", &key), ("ADMIN_TLS", "on")]), [""; 0]);
        let all = [("TLS_CERT", api.as_str()), ("TLS_KEY", &key), ("TLS_CLIENT_CA", &authority)];
        assert_eq!(mistakes(&all), [""; 0]);
        for (variables, name, why) in [
            (&[("TLS_CERT", api.as_str())][..], "TLS_CERT", "needs TLS_KEY"),
            (&[("TLS_KEY", &key)], "TLS_KEY", "needs TLS_CERT"),
            (&[("TLS_CLIENT_CA", &authority)], "TLS_CLIENT_CA", "needs TLS_CERT"),
            (&[("ADMIN_TLS", "on")], "ADMIN_TLS", "needs a certificate"),
            (&[("ADMIN_TLS", "yes")], "ADMIN_TLS", "must be on or off"),
            (&[("TLS_CERT", &api), ("TLS_KEY", &other)], "TLS_CERT", "with the key"),
            (&[("TLS_CERT", &api), ("TLS_KEY", &api)], "TLS_KEY", "no private key"),
            (&[("TLS_CERT", &key), ("TLS_KEY", &key)], "TLS_CERT", "no certificate"),
            (&[("TLS_CERT", "/none"), ("TLS_KEY", &key)], "TLS_CERT", "cannot be read"),
            (&[all[0], all[1], ("TLS_CLIENT_CA", &key)], "TLS_CLIENT_CA", "no certificate"),
        ] {
            let found = mistakes(variables);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(&format!("RINGBACK_{name}")) && found[0].contains(why), "{found:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_ignored_and_another_encoding_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let [marked, key, wide] = ["cert", "key", "wide"].map(|name| directory.path().join(name));
        let with_mark = |name: &str| [&b"\xef\xbb\xbf"[..], &fs::read(file(name)).unwrap()].concat();
        fs::write(&marked, with_mark("api.pem")).unwrap();
        fs::write(&key, with_mark("api.key")).unwrap();
        fs::write(&wide, b"\xff\xfe-\0-\0").unwrap();
        let [marked, key, wide] = [&marked, &key, &wide].map(|path| path.to_str().unwrap());
        assert_eq!(mistakes(&[("TLS_CERT", marked), ("TLS_KEY", key)]), [""; 0]);
        let found = mistakes(&[("TLS_CERT", wide), ("TLS_KEY", key)]);
        assert!(found[0].contains("UTF-16"), "{found:?}");
    }
}
