//! The calls that only read: each file packs the arguments of a script beside it and reads its answer.

mod dead;
mod destinations;
mod forecast;
mod gauges;
mod job;
mod page;
mod stats;
