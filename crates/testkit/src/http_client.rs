//! The one HTTP client of tests: no redirects, no proxies, and a TLS provider installed before it is built.

use std::sync::Once;
use std::time::Duration;

/// Total time of one request; no call of the API takes longer unless it hangs.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A new client. Its connections live on the calling runtime, so make one per test, not one per process.
///
/// # Panics
/// When the TLS backend cannot start.
#[must_use]
pub fn http_client() -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error says that the process has a provider already, which is all that is needed.
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
