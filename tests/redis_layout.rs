//! Tests of the Redis store alone: settings of the server, lost and damaged data, and keys changed by hand. Only
//! `keys` knows how keys of the layout are named and packed.

pub(crate) mod audit;
mod changed_by_hand;
mod cleaning;
mod clock_set_back;
mod damage;
mod due_slots;
mod durability;
mod fast_paths;
pub(crate) mod keys;
mod lane_ids;
mod lost_state;
mod order;
mod policies;
mod replaced_jobs;
mod server_settings;
mod stale_entries;
mod tags;
mod torn_file;
mod waiter;
mod wrong_types;
