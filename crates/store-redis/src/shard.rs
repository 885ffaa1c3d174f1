//! Calls on a shard that move no job: claims by carriers, pauses, order of topics, lateness, logs of attempts, and the outboxes of notices
//! and of the archive. The script `watch` is called in `events`.

mod archive;
mod lateness;
mod log_attempts;
mod order;
mod outbox;
mod pauses;
mod take_shard;
