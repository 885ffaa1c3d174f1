//! The store on Redis: one Lua script per transition. Rust turns the arguments of a transition into a script call and
//! the reply into values. `losses` notices data that are gone, `record` packs jobs, `lane_ids` numbers lanes,
//! `lua/prelude` knows their keys, and `topology` knows the servers.

mod accepted_counts;
mod call;
mod channel;
mod check;
mod clock_watch;
mod durability;
mod edges;
mod events;
mod info;
mod keys;
mod lane_ids;
mod losses;
mod moving;
mod queries;
mod record;
mod redis_store;
mod reply;
mod rewrite;
mod script;
mod server_checks;
mod slot_moves;
mod topology;
mod transition_log;

pub use self::channel::Wakes;
pub use self::edges::topics::PolicyChanges;
pub use self::events::Events;
pub use self::redis_store::RedisStore;
pub use self::topology::Address;
/// The files of certificates and keys for TLS to a server.
pub mod tls_files {
    pub use super::topology::{authorities, certificate, fit, key};
}
