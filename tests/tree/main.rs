//! What the source tree promises: imports go one way, and documents and sample files name what exists.
//!
//! Reads files only; starts nothing.

mod deploy;
mod docs;
