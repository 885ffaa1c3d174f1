//! The archiver as a child process: requests go to its standard input, answers come from its standard output. `sink`
//! gives it rows to keep, `history` queries it for ended jobs, `program` starts it, `message` has the format.
//!
//! So a program that uses the archive needs no database to be built, and a query that brings down a database driver
//! does not bring down the program.

mod history;
mod message;
mod program;
mod sink;

pub use self::history::{ChildHistory, serve_history};
pub use self::program::{ChildProgram, Source};
pub use self::sink::{ChildSink, serve};
