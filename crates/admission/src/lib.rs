//! Decides whether a submitted job is accepted, for the API and all else that submits jobs.
//!
//! [`Admission`] makes a job of what was submitted, or says what is wrong with it. It asks the [`Principal`] that
//! submits which topics and hosts it may use, `callback_urls` where jobs may go at all, and `quotas` how many and how
//! large ones a tenant may have. `refusals` has the problems of jobs that the store refuses, and `weight` says about
//! how much of a call to it a job fills. How jobs come, and how they get to the store, is not known here.

mod admission;
mod callback_urls;
mod principal;
mod quotas;
mod refusals;
mod weight;

pub use self::admission::Admission;
pub use self::callback_urls::{Destinations, cannot_be_sent};
pub use self::principal::Principal;
pub use self::quotas::{Allowed, QuotaError, Quotas};
pub use self::refusals::{invalid_field, limit_reached};
pub use self::weight::weight;
