//! What the store promises: the arguments and results of every edge of a job's life, the same for
//! all backends. Plain values without I/O. `ringback_store::Store` has the calls that take and
//! return them, and the backend crates implement these calls.

mod arrive;
pub mod attempt_log;
mod attempts;
mod audit;
mod carriers;
mod dead;
mod error;
mod events;
mod lateness;
mod lease;
mod moves;
mod options;
mod outbox;
mod page;
mod pass;
pub mod payload;
mod policies;
mod receipt;
mod redrive;
mod reserve;
mod shard;
mod stats;
mod topics;
mod wake;

pub use self::arrive::{Limit, SubmitResult, Submitted};
pub use self::attempts::{Attempt, AttemptRetention, MAX_ANSWER, MAX_ATTEMPTS, Note, Noted, Proof};
pub use self::audit::{Audit, DamageKind, Finding, MAX_FINDINGS, Repair, RunningAudit};
pub use self::carriers::LiveCarriers;
pub use self::dead::{DeadCursor, DeadFilter, DeadJob, DeadPage, DeadShardPage, MAX_DEAD};
pub use self::error::{Source, StoreError};
pub use self::events::{
    AttemptEnded, AttemptOutcome, Event, EventKind, EventName, StreamItem, UnknownEventName,
};
pub use self::lateness::Lateness;
pub use self::lease::{Lease, LeaseGrant, Renewed, Settled, StoreClock, Unsettled};
pub use self::moves::{Cancelled, Move, MoveResult, Token};
pub use self::options::Options;
pub use self::outbox::{
    AckResult, DeadLetter, MAX_NOTICES, MAX_OUTBOX_BYTES, NOTICE_TOPIC, Outbox, OutboxAck, OutboxId,
    PendingNotice, is_notice_topic,
};
pub use self::page::{Cursor, Filter, InvalidCursor, MAX_PAGE, Page, StoredJob};
pub use self::pass::{ExpiredLease, Pass, Recovered};
pub use self::policies::{PolicyPut, PolicyRows, PolicyVersion};
pub use self::receipt::{InvalidReceipt, LeaseId, Receipt};
pub use self::redrive::{
    ENDED_REDRIVE_RETENTION, InvalidRedriveId, MAX_ENDED_REDRIVES, MAX_RATE, MAX_REDRIVES, Redrive,
    RedriveId, RedriveJob, RedriveStart, RedriveState, Redriven, StoredRedrive, TakenRedrive, WorkerId,
};
pub use self::reserve::{LeaseCheck, Pull, Pulled, PulledJob, Reserve, Reserved, RetryContext};
pub use self::shard::{Epoch, MAX_SHARDS, Shard};
pub use self::stats::{Profile, StateCounts, Stats};
pub use self::topics::{
    DUE_HORIZON, MAX_LANES, MAX_LANES_SEARCHED, MAX_READY_SEARCHED, MAX_RESUMED_LANES, MAX_TOPIC_PAGE,
    MAX_TOPICS, TopicCapacity, TopicCounts, TopicPage, TopicPresence, TopicShardPage, TopicSpan,
};
pub use self::wake::Wake;
