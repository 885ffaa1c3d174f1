//! What goes wrong around Ringback: processes die, stores fail, nodes change, callers race, load is high.

mod chaos;
mod cluster;
mod connections;
mod crash;
mod credentials;
mod installations;
mod load;
mod logs;
mod lost_data;
mod outage;
mod race;
mod shutdown;
