//! The program `store-child`: fills an embedded store until it is killed, for benchmarks and crash tests.

#[tokio::main]
async fn main() {
    ringback_bench::store_child(&std::env::args().skip(1).collect::<Vec<_>>()).await;
}
