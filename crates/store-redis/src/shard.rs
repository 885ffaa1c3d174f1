//! Calls on a shard that move no job: who holds it, pauses, logs of attempts, the outboxes, and the watch for events.

mod archive;
mod log_attempts;
mod outbox;
mod pauses;
mod take_shard;
