//! The JSON of the public API: parsers of requests, such as [`parse_job`] and [`parse_policy`], the
//! types of answers and problems, and the lines of exports and imports. Used by the API and the
//! command line. No I/O and no HTTP.

mod answer;
mod attempts;
mod audit;
mod bulk;
mod dead;
mod events;
mod export;
mod fields;
mod import;
mod moves;
mod notice;
mod policy;
mod problem;
mod pull;
mod submit;
mod topics;

pub use answer::{
    BatchAnswer, BatchResult, CancelAnswer, InFlight, JobAnswer, LastAnswer, LatenessAnswer, OutboxAnswer,
    StatesAnswer, StatsAnswer, StoreAnswer, TombstonesAnswer,
};
pub use attempts::{AttemptAnswer, AttemptsAnswer};
pub use audit::{AuditAnswer, FindingAnswer};
pub use bulk::{
    DEFAULT_PAGE, ImportAnswer, ImportProblem, MAX_IMPORT_BYTES, MAX_IMPORT_LINES, MAX_PAGE, PageAnswer,
};
pub use dead::{
    DEFAULT_RATE, DeadJobAnswer, DeadPageAnswer, PurgeAnswer, RevivalAnswer, RevivalsAnswer, ReviveAsk,
};
pub use events::EventAnswer;
pub use export::ExportLine;
pub use fields::due::parse_time;
pub use fields::values::{REASON, is_reason};
pub use import::parse_import;
pub use moves::{parse_nothing, parse_reschedule};
pub use notice::{NoticeBody, NoticeData, on_dead_of_notices};
pub use policy::{PolicyAnswer, TopicDeleteAnswer, parse_policy};
pub use problem::{FieldError, Problem};
pub use pull::{
    BuryAsk, MAX_PULL, MAX_RECEIPTS, MAX_WAIT, PulledAnswer, ReceiptAnswer, ReceiptResult, ReceiptsAnswer,
    RenewAnswer, ReserveAnswer, ReserveAsk, RetryAsk, parse_finish, parse_finish_all, parse_release,
    parse_renew,
};
pub use submit::{Defaults, parse_job, parse_job_by};
pub use topics::{TopicAnswer, TopicStates, TopicsAnswer};
