//! The JSON of the public API, in both directions: what a submit may say and how it is
//! judged ([`parse_job`]), and the shapes of answers and problems. Used by the API, the
//! command line and the test kit; no I/O, no HTTP.

mod answer;
mod duration;
mod fields;
mod problem;
mod submit;

pub use answer::{
    BatchAnswer, BatchResult, CancelAnswer, InFlight, JobAnswer, LastAnswer, LatenessAnswer, StatesAnswer,
    StatsAnswer, StoreAnswer, TombstonesAnswer,
};
pub use duration::parse_duration;
pub use problem::{FieldError, Problem};
pub use submit::{Defaults, parse_job};
