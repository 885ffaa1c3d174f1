//! What goes wrong around Ringback: processes die, stores fail, nodes change, callers race, load is high.

mod cluster;
mod crash;
mod installations;
mod load;
mod lost_data;
mod outage;
mod race;
mod shutdown;
