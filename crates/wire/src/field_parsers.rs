//! Parsers of the fields that several requests share. Each collects all mistakes instead of stopping at
//! the first.

pub(crate) mod due;
pub(crate) mod entries;
pub(crate) mod first_entries;
pub(crate) mod if_exists;
pub(crate) mod object;
pub(crate) mod retry;
pub(crate) mod values;
