//! Free ports for servers that need their port before they start, and the HTTP client of tests.

use std::net::TcpListener;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The range of ports ends below that from which Linux takes the ports of outgoing connections (32768 and up): a server
/// that is restarted on its port must not find a client's socket there.
const FIRST: u32 = 11_000;
const COUNT: u32 = 20_000;

/// The limit of one request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Finds a port of 127.0.0.1 on which nothing listens; panics without one. A process gets each port only once. Other
/// processes start elsewhere in the range, so a clash is unlikely but possible.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(7_919);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + start.wrapping_add(step) % COUNT;
        let port = u16::try_from(port).expect("the range ends below 65,536");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}

/// Builds a client for plain HTTP, with a limit of 30 seconds a request. Its connections belong to the calling
/// runtime, so make one for each test, not for each process.
pub fn http_client() -> reqwest::Client {
    // The client trusts no certificate: a debug build takes longer to read those of the system than for most requests.
    build(reqwest::Client::builder().tls_certs_only([]))
}

/// Builds a client that also speaks HTTPS, with the same limit.
pub(crate) fn https_client() -> reqwest::Client {
    build(reqwest::Client::builder())
}

fn build(client: reqwest::ClientBuilder) -> reqwest::Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that the process has a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    client
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .timeout(TIMEOUT)
        .build()
        .expect("a client without special settings can be built")
}
