//! What goes wrong around Ringback: processes die, stores fail, nodes change, callers race, load is high.

mod chaos;
mod cluster;
mod connections;
mod crash;
mod credentials;
mod durability;
mod failovers;
mod installations;
mod load;
mod logs;
mod lost_data;
mod outage;
mod promoted;
mod race;
mod replicated;
mod rolling;
mod sentinel;
mod shutdown;
mod slot_moves;
mod steady_load;
