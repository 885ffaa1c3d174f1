//! The packed form of a schedule, which stores keep and do not look into.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use super::{Cron, Firing, Missed, Overlap, Progress, Rule, Schedule, ScheduleState, ScheduledJob};
use crate::clock::{Timestamp, millis_up};
use crate::contract::payload;
use crate::job::{Tags, Topic};

/// A packed schedule that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a schedule cannot be read")]
pub struct UnreadableSchedule;

/// Times and durations are in ms.
#[derive(Serialize, Deserialize)]
struct Packed {
    rule: PackedRule,
    topic: String,
    origin: String,
    timeout: Option<u64>,
    tags: Tags,
    payload: Vec<u8>,
    to_url_of_topic: bool,
    missed: u8,
    catchup: u64,
    overlap: u8,
    jitter: u64,
    from: Option<u64>,
    until: Option<u64>,
    created: u64,
    paused: bool,
    next: Option<u64>,
    last: Option<(u64, String)>,
    fired: u64,
    firings_missed: u64,
    overlapped: u64,
}

#[derive(Serialize, Deserialize)]
enum PackedRule {
    Cron { written: String, zone: String },
    Every { period: u64, anchor: u64 },
}

impl ScheduleState {
    /// Packs it.
    pub fn pack(&self) -> Vec<u8> {
        let Self { schedule, progress } = self;
        let ScheduledJob { topic, delivery, to_url_of_topic } = &schedule.job;
        let packed = Packed {
            rule: match &schedule.rule {
                Rule::Cron(cron) => {
                    PackedRule::Cron { written: cron.as_str().to_owned(), zone: cron.zone().to_string() }
                }
                Rule::Every { period, anchor } => {
                    PackedRule::Every { period: millis_up(*period), anchor: anchor.as_millis() }
                }
            },
            topic: topic.as_str().to_owned(),
            origin: delivery.callback.origin().to_owned(),
            timeout: delivery.timeout.map(millis_up),
            tags: delivery.tags.clone(),
            payload: payload::pack(delivery),
            to_url_of_topic: *to_url_of_topic,
            missed: match schedule.missed {
                Missed::Skip => 0,
                Missed::One => 1,
                Missed::All => 2,
            },
            catchup: millis_up(schedule.catchup),
            overlap: u8::from(schedule.overlap == Overlap::Skip),
            jitter: millis_up(schedule.jitter),
            from: schedule.from.map(Timestamp::as_millis),
            until: schedule.until.map(Timestamp::as_millis),
            created: progress.created.as_millis(),
            paused: progress.paused,
            next: progress.next.map(Timestamp::as_millis),
            last: progress.last.as_ref().map(|last| (last.time.as_millis(), last.id.to_string())),
            fired: progress.fired,
            firings_missed: progress.missed,
            overlapped: progress.overlapped,
        };
        postcard::to_stdvec(&packed).expect("plain data always serialises")
    }

    /// Unpacks the result of [`Self::pack`].
    ///
    /// # Errors
    /// It is damaged.
    pub fn unpack(bytes: &[u8]) -> Result<Self, UnreadableSchedule> {
        postcard::from_bytes(bytes).ok().and_then(unpacked).ok_or(UnreadableSchedule)
    }
}

fn unpacked(packed: Packed) -> Option<ScheduleState> {
    let (time, length) = (Timestamp::from_millis, Duration::from_millis);
    let rule = match packed.rule {
        PackedRule::Cron { written, zone } => Rule::Cron(Cron::from_stored(&written, &zone)?.into()),
        PackedRule::Every { period, anchor } if period > 0 => {
            Rule::Every { period: length(period), anchor: time(anchor) }
        }
        PackedRule::Every { .. } => return None,
    };
    let timeout = packed.timeout.map(length);
    let job = ScheduledJob {
        topic: Topic::from_stored(&packed.topic)?,
        delivery: payload::unpack(&Bytes::from(packed.payload), packed.origin, timeout, packed.tags)?,
        to_url_of_topic: packed.to_url_of_topic,
    };
    let schedule = Schedule {
        rule,
        job,
        missed: *Missed::VARIANTS.get(usize::from(packed.missed))?,
        catchup: length(packed.catchup),
        overlap: *Overlap::VARIANTS.get(usize::from(packed.overlap))?,
        jitter: length(packed.jitter),
        from: packed.from.map(time),
        until: packed.until.map(time),
    };
    let last = match packed.last {
        Some((at, id)) => Some(Firing { time: time(at), id: id.parse().ok()? }),
        None => None,
    };
    let progress = Progress {
        created: time(packed.created),
        paused: packed.paused,
        next: packed.next.map(time),
        last,
        fired: packed.fired,
        missed: packed.firings_missed,
        overlapped: packed.overlapped,
    };
    Some(ScheduleState { schedule, progress })
}
