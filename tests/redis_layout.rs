//! What only Redis can be asked: server settings, and keys that were changed by hand.
//!
//! How a key of the layout is called and packed is known to `keys` alone.

pub(crate) mod check;
mod cleaning;
mod clock_set_back;
mod damage;
mod due_slots;
mod durability;
mod foreign_keys;
pub(crate) mod keys;
mod lane_ids;
mod lost_state;
mod policies;
mod replaced;
mod server_settings;
mod stale_entries;
mod tags;
mod torn_file;
mod wrong_types;
