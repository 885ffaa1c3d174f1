//! The JSON of the public API: parsers of requests, such as [`parse_job`] and [`parse_policy`], the
//! types of answers and problems, and the lines of exports and imports. Used by the API and the
//! command line. No I/O and no HTTP.

mod archive;
mod attempts;
mod audit_log;
mod breakers;
mod bulk;
mod check;
mod credentials;
mod dead;
mod declare;
mod destinations;
mod effective;
mod events;
mod export;
mod field_parsers;
mod filter;
mod first_items;
mod forecast;
mod history;
mod import;
mod inspect;
mod job_answers;
mod job_changes;
mod keys;
mod kinds;
mod limits;
mod listing;
mod notice;
mod order;
mod policy;
mod problem;
mod pull;
mod quotas;
mod request_details;
mod schedules;
pub mod schema;
mod submit;
mod topics;
mod waiting;

pub use self::declare::{Request, about};
pub use self::field_parsers::due::delay_note;
pub use self::field_parsers::entries::Entries;
pub use self::field_parsers::values::{MAX_KEEP, MAX_REPLAY_NAME, MAX_WAIT, REASON, is_reason};
pub use self::first_items::FirstItems;
pub use self::{
    archive::*, attempts::*, audit_log::*, breakers::*, bulk::*, check::*, credentials::*, dead::*,
    destinations::*, effective::*, events::*, export::*, filter::*, forecast::*, history::*, import::*,
    inspect::*, job_answers::*, job_changes::*, keys::*, limits::*, listing::*, notice::*, order::*,
    policy::*, problem::*, pull::*, quotas::*, request_details::*, schedules::*, submit::*, topics::*,
    waiting::*,
};
