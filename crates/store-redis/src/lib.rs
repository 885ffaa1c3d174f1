//! The store on Redis: one Lua script per transition. A script lies beside the Rust file that packs its arguments and
//! reads its answer, in `transitions`, `shard`, `installation`, `queries` or `check`; `call` runs it. The Lua files in
//! `prelude` are common to all scripts. `record` packs jobs, `lane_ids` makes the ids of lanes, and `topology` reaches
//! the servers.

mod accepted_counts;
mod call;
mod channel;
mod check;
mod clock_watch;
mod durability;
mod events;
mod info;
mod installation;
mod keys;
mod lane_ids;
mod moving_slots;
mod queries;
mod record;
mod redis_store;
mod reply;
mod script;
mod server_checks;
mod shard;
mod shard_fields;
mod topology;
mod transition_log;
mod transitions;
mod watch_moves;

pub use self::channel::Wakes;
pub use self::events::Events;
pub use self::installation::policies::PolicyChanges;
pub use self::redis_store::RedisStore;
pub use self::topology::Address;
/// The files of certificates and keys for TLS to a server.
pub mod tls_files {
    pub use super::topology::{authorities, certificate, fit, key};
}
