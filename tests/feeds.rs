//! Feeds: rows of a business database are jobs, read by `ringback-feed` from PostgreSQL or SQLite, or taken out of an
//! outbox; whatever is killed, changed or wrong meanwhile.

mod bad_rows;
mod business;
mod check;
mod columns;
mod crash_points;
mod database_faults;
mod large_table;
mod losses;
mod outbox;
mod sharing;
mod window;
