//! The harness of tests and benchmarks: private redis-servers and clusters, the real binaries as child processes,
//! whole stacks of them, and HTTP receivers that answer by script.
//!
//! Everything listens on 127.0.0.1 only and ends when its value is dropped. A failure panics with a message that
//! reads alone, because only tests and benchmarks call this crate. The exception is the demo, which is for users
//! and returns errors.

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

pub use crate::child::Child;
pub use crate::clock::now;
pub use crate::eventually::eventually;
pub use crate::http_client::http_client;
pub use crate::ports::free_port;
pub use crate::process::{Process, ProcessSpec};
pub use crate::redis::{CallWatch, Persistence, RedisCluster, RedisOptions, RedisServer, server_binary};
pub use crate::sink::{Answer, Arrival, Script, Sink};
pub use crate::stack::{Reply, Role, Stack, StackOptions};
