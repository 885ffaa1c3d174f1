//! Feeds: rows of a business database are jobs, read by `ringback-feed` from PostgreSQL or SQLite, or taken out of an
//! outbox; whatever is killed, changed or wrong meanwhile.

mod business;
mod check;
mod columns;
mod crash_points;
mod losses;
mod million;
mod outbox;
mod refusals;
mod sharing;
mod sources;
mod window;
