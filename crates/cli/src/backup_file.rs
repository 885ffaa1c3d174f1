//! The file format of a backup, with its reader and writer: lines of JSON, each with a kind and a value. The first line
//! is a header with the version of the format; the last one has the number of lines of each kind and a checksum of all
//! lines before it, so that a backup that was cut off or changed is noticed.

mod format;
mod read;
mod write;

pub(crate) use self::format::{Header, Kind};
pub(crate) use self::read::{Damage, Line, Lines};
pub(crate) use self::write::{Summary, Writer};
