//! Tests of feeds: `ringback-feed` turns rows of a PostgreSQL or SQLite database into jobs, or takes jobs out of an
//! outbox, although processes are killed, rows change or are wrong, and databases fail.

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
