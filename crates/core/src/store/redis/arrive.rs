//! The edges by which jobs arrive: submit and import.

use redis::Cmd;

use super::layout::{LaneId, lane_words};
use super::script::{self, Script, reply};
use super::{RedisStore, codec, layout};
use crate::clock::millis_up;
use crate::job::{Due, ImportJob, NewJob, Topic};
use crate::store::{Shard, StoreError, Submitted};

impl RedisStore {
    pub(in crate::store) async fn submit(
        &self,
        shard: Shard,
        jobs: &[NewJob],
    ) -> Result<Vec<Submitted>, StoreError> {
        let jobs: Vec<&NewJob> = jobs.iter().collect();
        self.arrive(&script::SUBMIT, shard, &jobs, |_, _| {}).await
    }

    pub(in crate::store) async fn import(
        &self,
        shard: Shard,
        jobs: &[ImportJob],
    ) -> Result<Vec<Submitted>, StoreError> {
        let histories: Vec<_> =
            jobs.iter().map(|job| job.history.as_ref().map(codec::history).unwrap_or_default()).collect();
        let jobs: Vec<&NewJob> = jobs.iter().map(|job| &job.job).collect();
        let history = |cmd: &mut Cmd, n: usize| {
            cmd.arg(&histories[n]);
        };
        self.arrive(&script::IMPORT, shard, &jobs, history).await
    }

    /// `more` adds to the arguments of the job of a number.
    async fn arrive(
        &self,
        script: &Script,
        shard: Shard,
        jobs: &[&NewJob],
        more: impl Fn(&mut Cmd, usize),
    ) -> Result<Vec<Submitted>, StoreError> {
        let mut lanes = Vec::new();
        let packed: Vec<_> = jobs
            .iter()
            .map(|job| {
                let lane = named(&mut lanes, job);
                (lane, layout::pack(job, lane))
            })
            .collect();
        let answer = self.run(script, shard, |cmd| {
            cmd.arg(lanes.len());
            for (lane, topic, origin) in &lanes {
                cmd.arg(&lane.0).arg(lane_words(topic, origin));
            }
            for (n, (job, (lane, packed))) in jobs.iter().zip(&packed).enumerate() {
                let due = match job.due {
                    Due::In(delay) => format!("+{}", millis_up(delay)),
                    Due::At(at) => at.as_millis().to_string(),
                };
                cmd.arg(&job.key.locator().0).arg(due).arg(&lane.0);
                cmd.arg(&packed.rest).arg(&packed.external);
                more(cmd, n);
            }
        });
        let answers = reply::list(answer.await?)?;
        if answers.len() != jobs.len() {
            return Err(StoreError::Unreadable("a submit's answers"));
        }
        answers.into_iter().zip(jobs).map(|(answer, job)| codec::submitted(answer, &job.key)).collect()
    }
}

/// The lane of a job, which is among `lanes` then. Those of a batch are few, so they are
/// looked through.
fn named<'a>(lanes: &mut Vec<(LaneId, &'a Topic, &'a str)>, job: &'a NewJob) -> LaneId {
    let (topic, origin) = (&job.key.topic, job.delivery.callback.origin());
    if let Some((lane, ..)) = lanes.iter().find(|(_, t, o)| *t == topic && *o == origin) {
        return *lane;
    }
    let lane = LaneId::of(&lane_words(topic, origin));
    lanes.push((lane, topic, origin));
    lane
}
