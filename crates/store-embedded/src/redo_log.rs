//! The redo log and the database that it belongs to: each group of calls is one frame of the log, and a checkpoint makes
//! the changes of all frames durable in the tables. `frame` packs the rows of a group, `log` writes the file, `replay`
//! reads it and brings its frames into the database, and `checkpoint` ties all of them together.

pub(crate) mod checkpoint;
pub(crate) mod frame;
pub(crate) mod log;
mod replay;
#[cfg(test)]
mod tests;
