//! The HTTP client of tests: no redirects, no proxies, no retries.

use std::sync::Once;
use std::time::Duration;

/// The limit of one request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Builds a client. Its connections belong to the calling runtime, so make one per test, not one per process.
///
/// # Panics
/// When the TLS backend cannot start.
#[must_use]
pub fn http_client() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that the process has a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .timeout(TIMEOUT)
        .build()
        .expect("a client without special settings can be built")
}
