//! What goes wrong around Ringback: processes die, stores fail, nodes change, callers race, load is high.

mod cluster;
mod connections;
mod crash;
mod credentials;
mod failovers;
mod installations;
mod load;
mod logs;
mod lost_data;
mod outage;
mod race;
mod sentinel;
mod shutdown;
mod slot_moves;
mod steady_load;
