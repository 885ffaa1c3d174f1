//! What tests and benchmarks need around Ringback: private redis-servers and clusters, the real binaries as
//! child processes, a whole stack of them, and receivers that answer by script.
//!
//! Everything listens on 127.0.0.1 only and ends with the value that stands for it. A failure panics with a
//! message that reads alone: this crate has no other callers than tests and load tools. Only the demonstration
//! is for users, and answers with errors.

pub mod bench;
mod child;
mod clock;
pub mod demo;
mod eventually;
mod http_client;
mod ports;
mod process;
mod redis;
mod sink;
mod stack;

pub use crate::clock::now;
pub use crate::eventually::eventually;
pub use crate::http_client::http_client;
pub use crate::ports::free_port;
pub use crate::process::{Process, ProcessSpec};
pub use crate::redis::{CallWatch, Persistence, RedisCluster, RedisOptions, RedisServer};
pub use crate::sink::{Answer, Arrival, Script, Sink};
pub use crate::stack::{Reply, Role, Stack, StackOptions};
