//! A process that fills an embedded store until it is killed; for tests and benchmarks.

use ringback_testkit::bench::store_child;

#[tokio::main]
async fn main() {
    store_child(&std::env::args().skip(1).collect::<Vec<_>>()).await;
}
