//! `ringback revive --follow`: prints how many of the jobs that a bulk operation has revived are done, dead again and
//! so on. It lists the dead jobs of the filter before the operation begins, and then reads each of them when its next
//! attempt is due, until all have ended or the time is over.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_core::job::JobKey;
use ringback_core::written_time::parse_time;
use ringback_wire::{JobResponse, MAX_PAGE};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, sleep_until};

use super::pages::next_cursor;
use super::session::{Session, parse};
use crate::args::{Filter, Format};
use crate::client::{Call, ClientError, LONG, SHORT};
use crate::failure::CommandOutcome;
use crate::output::note;

/// The least pause before a job is read again, which grows by 10 ms for each job that is followed: at most a hundred
/// reads a second.
const POLL: Duration = Duration::from_secs(1);
const POLL_OF_EACH: Duration = Duration::from_millis(10);
/// How many reads in a row may fail, a second apart.
const MAX_FAILED: u32 = 20;

/// A dead job that matched the filter before the operation began.
struct Candidate {
    key: JobKey,
    attempts: u32,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<JobResponse>,
    next: Option<String>,
}

/// What became of the revived jobs that were followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Outcomes {
    followed: u64,
    done: u64,
    dead: u64,
    cancelled: u64,
    /// Not ended yet.
    pending: u64,
    /// Ended, and not known any more.
    forgotten: u64,
}

/// The result of reading a candidate.
enum Look {
    /// It was not revived.
    Left,
    Ended(End),
    /// It has not ended; read it again at this time.
    Pending(Instant),
}

#[derive(Clone, Copy)]
enum End {
    Done,
    Dead,
    Cancelled,
    Forgotten,
}

/// The jobs to follow.
pub(crate) struct Followed(Vec<Candidate>);

impl Followed {
    /// Lists the dead jobs that match a filter.
    pub(crate) async fn list(session: &Session, filter: &Filter) -> anyhow::Result<Self> {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let mut call = Call { query: filter.query(), ..Call::new(Method::GET, &["v1", "jobs"]) };
            if filter.state.is_none() {
                call.query.push(("state", "dead".to_owned()));
            }
            call.query.push(("limit", MAX_PAGE.to_string()));
            call.query.extend(cursor.iter().map(|cursor: &String| ("cursor", cursor.clone())));
            let page: Page = parse(&session.client.ask(call, LONG).await?.body)?;
            for JobResponse { topic, id, attempts, .. } in page.items {
                let (Ok(topic), Ok(id)) = (topic.parse(), id.parse()) else { continue };
                found.push(Candidate { key: JobKey { topic, id }, attempts });
            }
            match page.next {
                None => return Ok(Self(found)),
                next => cursor = Some(next_cursor(cursor.as_ref(), next)?),
            }
        }
    }

    /// Follows the jobs until all have ended, or for `most`, and prints how many of those that were revived ended and
    /// how. `changed` is how many the operation has revived; a note says how many of these are not followed.
    /// [`CommandOutcome::Done`] if all that were followed are done.
    pub(crate) async fn follow(
        self,
        session: &mut Session,
        changed: u64,
        most: Duration,
    ) -> anyhow::Result<CommandOutcome> {
        let Self(candidates) = self;
        let (begun, mut outcomes) = (Instant::now(), Outcomes::default());
        let mut waiting: BTreeSet<_> = (0..candidates.len()).map(|n| (begun, n)).collect();
        let until = begun + most;
        while let Some((at, n)) = waiting.pop_first() {
            sleep_until(at.min(until)).await;
            let candidate = &candidates[n];
            match look(session, candidate, POLL.max(POLL_OF_EACH * count(waiting.len()))).await? {
                Look::Left => continue,
                Look::Ended(end) => outcomes.add(end),
                // After the time each is looked at once more.
                Look::Pending(again) if again < until || at < until => {
                    waiting.insert((again.min(until), n));
                    continue;
                }
                Look::Pending(_) => outcomes.pending += 1,
            }
            outcomes.followed += 1;
        }
        if changed > outcomes.followed {
            let more = changed - outcomes.followed;
            note(&format!(
                "{more} more were revived, which died after their list was made; they are not followed"
            ));
        }
        match session.out.format {
            Format::Json => session.out.line(serde_json::to_string(&Line { outcomes })?)?,
            Format::Table => session.out.line(outcomes.sentence())?,
        }
        Ok(if outcomes.done == outcomes.followed { CommandOutcome::Done } else { CommandOutcome::No })
    }
}

#[derive(Serialize)]
struct Line {
    outcomes: Outcomes,
}

impl Outcomes {
    const fn add(&mut self, end: End) {
        match end {
            End::Done => self.done += 1,
            End::Dead => self.dead += 1,
            End::Cancelled => self.cancelled += 1,
            End::Forgotten => self.forgotten += 1,
        }
    }

    fn sentence(&self) -> String {
        let Self { followed, done, dead, cancelled, pending, forgotten } = *self;
        let parts = [
            (done, "done"),
            (dead, "dead again"),
            (cancelled, "cancelled"),
            (pending, "not ended yet"),
            (forgotten, "ended and not known any more"),
        ];
        let parts: Vec<_> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        if parts.is_empty() {
            return "no job was revived".to_owned();
        }
        format!("of {followed} revived jobs: {}", parts.join(", "))
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Reads a job; one that is no longer known has ended. Repeats transient errors every second, up to 20 in a row.
async fn look(session: &Session, candidate: &Candidate, poll: Duration) -> anyhow::Result<Look> {
    let mut failed = 0;
    loop {
        let call = Call::job(Method::GET, &candidate.key, &[]);
        match session.client.ask(call, SHORT).await {
            Ok(reply) => return Ok(judge(&parse(&reply.body)?, candidate.attempts, poll)),
            Err(ClientError::Problem { problem, .. }) if problem.status == 404 => {
                return Ok(Look::Ended(End::Forgotten));
            }
            Err(error) if error.is_transient() && failed < MAX_FAILED => failed += 1,
            Err(error) => return Err(error.into()),
        }
        sleep(POLL).await;
    }
}

fn judge(job: &JobResponse, attempts: u32, poll: Duration) -> Look {
    match job.state.as_str() {
        "done" => Look::Ended(End::Done),
        "cancelled" => Look::Ended(End::Cancelled),
        // Without an attempt since, it was not revived.
        "dead" if job.attempts == attempts => Look::Left,
        "dead" => Look::Ended(End::Dead),
        state => {
            let due = parse_time(&job.due_at).ok().filter(|_| state == "delayed");
            let wait = due.map_or(Duration::ZERO, |due| due.since(SystemClock.now()));
            Look::Pending(Instant::now() + wait.max(poll))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcomes_are_a_sentence_without_what_did_not_happen() {
        let outcomes = Outcomes { followed: 6, done: 3, dead: 2, pending: 1, ..Outcomes::default() };
        assert_eq!(outcomes.sentence(), "of 6 revived jobs: 3 done, 2 dead again, 1 not ended yet");
        assert_eq!(Outcomes::default().sentence(), "no job was revived");
    }
}
