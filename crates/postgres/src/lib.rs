//! Connections to PostgreSQL, with TLS by rustls, bounded statements, and notifications. What is asked through them is
//! known to the crates that use this one.

mod server;
mod tls;

pub use self::server::{Connection, Limits, Server, describe};
