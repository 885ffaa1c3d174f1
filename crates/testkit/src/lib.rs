//! The harness of tests and benchmarks: private redis-servers, clusters and PostgreSQL servers, the real binaries as
//! child processes, whole stacks of them, proxies that fail on purpose, HTTP receivers that answer by script, and name
//! servers. Runs under faults write a [`history`], which is checked afterwards.
//!
//! Everything listens on 127.0.0.1 only and ends when its value is dropped. Whatever fails, is answered with another
//! status than a method names, or takes longer than its time limit, panics with a message that reads alone: only tests
//! and benchmarks call this crate. The exceptions are the demo, which is for users, and the checker of histories: they
//! return errors.

pub mod attempts;
mod browser;
mod child;
pub mod demo;
mod environment;
pub mod figures;
pub mod history;
mod http_proxy;
mod name_server;
mod network;
mod postgres;
mod preload;
mod process;
mod proxy;
pub mod recorded;
mod redis;
mod redis_errors;
mod sink;
mod stack;
mod time;

pub use crate::browser::{Browser, Key};
pub use crate::child::Child;
pub use crate::environment::{seed, variable};
pub use crate::http_proxy::{HttpChanges, HttpMessage, HttpProxy};
pub use crate::name_server::{Failing, Family, NameServer};
pub use crate::network::{free_port, http_client};
pub use crate::postgres::PostgresServer;
pub use crate::preload::{LookUp, Preload, Seen};
pub use crate::process::{Process, ProcessSpec};
pub use crate::proxy::{Proxy, ProxyMode};
pub use crate::redis::{
    CallWatch, InstructionCount, Persistence, RedisCluster, RedisOptions, RedisSentinel, RedisServer,
    SlotMove, add_to_shard_field, server_binary, set_shard_field, shard_field, shard_fields,
};
pub use crate::redis_errors::{RedisErrors, RedisFault};
pub use crate::sink::{Answer, Arrival, Script, Sink};
pub use crate::stack::{Reply, Role, Stack, StackOptions};
pub use crate::time::{eventually, now};
