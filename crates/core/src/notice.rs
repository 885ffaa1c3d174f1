//! Notices: the jobs that tell upstream that another job has died. What one says, and under which
//! name, follows from the death alone, so that telling it again is the same submit again.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::clock::Timestamp;
use crate::job::{
    Body, Callback, ContentHash, Context, Delivery, Due, Headers, Job, JobId, JobKey, NewJob, Topic, Trace,
};
use crate::policy::Policy;
use crate::wire::NoticeBody;

/// The topic of all notices. The death of a job of this topic is told to nobody.
pub const NOTICES: &str = "ringback.on-dead";

/// Whether this is the topic of notices.
pub fn is_of_notices(topic: &Topic) -> bool {
    topic.as_str() == NOTICES
}

/// A death, as it was when the job died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The job.
    pub job: Job,
    /// When it died.
    pub died: Timestamp,
    /// When it came to this store: with an import later than it was created.
    pub arrived: Timestamp,
    /// Where the job itself wants it to be told.
    pub on_dead: Option<Callback>,
    /// The job's context.
    pub context: Context,
    /// The trace the job belongs to.
    pub trace: Option<Trace>,
}

impl Death {
    /// The job that tells it: to the URL that the job brought, else to that of its topic's
    /// policy. None where neither has one, and for the topic of notices.
    pub fn notice(&self, policy: Option<&Policy>) -> Option<NewJob> {
        if is_of_notices(&self.job.key.topic) {
            return None;
        }
        let url = self.on_dead.clone().or_else(|| policy?.on_dead.clone())?;
        let body = NoticeBody::new(self).to_string();
        let content = content(&url, &body);
        let delivery = Delivery {
            callback: url,
            body: Body { bytes: body.into(), content_type: None },
            headers: Headers::default(),
            context: self.context.clone(),
            retry: None,
            timeout: None,
            trace: self.trace,
            on_dead: None,
        };
        let topic = NOTICES.parse().expect("it lies within the alphabet of topics");
        let key = JobKey { topic, id: self.id() };
        Some(NewJob { key, due: Due::In(Duration::ZERO), delivery, content })
    }

    /// 128 bits over which death it is. Attempts only grow, so a job dies once with each number of
    /// them; one that was taken in anew may begin with a number that it has had. The time of death is
    /// not in it: a death that a fail-over undid, and that was settled again, is the same one.
    fn id(&self) -> JobId {
        let Self { job: Job { key, created, attempts, .. }, arrived, .. } = self;
        let digest = Sha256::digest(format!("{key} {created} {arrived} {attempts}"));
        let id = digest[..16].iter().fold(String::new(), |id, byte| format!("{id}{byte:02x}"));
        id.parse().expect("digits lie within the alphabet of ids")
    }
}

fn content(url: &Callback, body: &str) -> ContentHash {
    let digest = Sha256::digest(format!("{url} {body}"));
    let mut short = [0; 8];
    short.copy_from_slice(&digest[..8]);
    ContentHash(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::LastAttempt;
    use crate::state::State;
    use crate::wire::parse_policy;

    fn death(topic: &str, on_dead: Option<&str>) -> Death {
        let job = Job {
            key: JobKey { topic: topic.parse().unwrap(), id: "order-1".parse().unwrap() },
            state: State::Dead,
            due: Timestamp::from_millis(1_000),
            created: Timestamp::from_millis(500),
            attempts: 3,
            failures: 2,
            last: Some(LastAttempt {
                at: Timestamp::from_millis(1_001),
                status: Some(503),
                error: None,
                duration: Duration::from_millis(17),
            }),
            reason: Some("exhausted".to_owned()),
        };
        let context = Context::parse(vec![("tenant".to_owned(), "a7".to_owned())]).unwrap();
        let on_dead = on_dead.map(|url| Callback::parse(url).unwrap());
        let trace = Some(Trace { trace_id: [1; 16], parent_id: [2; 8], flags: 1 });
        let [died, arrived] = [1_020, 500].map(Timestamp::from_millis);
        Death { job, died, arrived, on_dead, context, trace }
    }

    #[test]
    fn a_notice_tells_which_job_died_and_why() {
        let notice = death("pay", Some("https://up.example/dead")).notice(None).unwrap();
        assert_eq!(notice.key.topic.as_str(), "ringback.on-dead");
        assert_eq!(notice.delivery.callback.to_string(), "https://up.example/dead");
        assert_eq!(notice.delivery.context.entries(), [("tenant".to_owned(), "a7".to_owned())]);
        assert_eq!(
            (notice.delivery.trace.map(|trace| trace.trace_id), notice.delivery.on_dead),
            (Some([1; 16]), None)
        );
        let body = std::str::from_utf8(&notice.delivery.body.bytes).unwrap();
        assert_eq!(
            body,
            r#"{"type":"job.dead","timestamp":"1970-01-01T00:00:01.020Z","data":{"topic":"pay","id":"order-1","state":"dead","due_at":"1970-01-01T00:00:01.000Z","created_at":"1970-01-01T00:00:00.500Z","attempts":3,"failures":2,"last":{"at":"1970-01-01T00:00:01.001Z","status":503,"duration_ms":17},"reason":"exhausted","context":{"tenant":"a7"}}}"#
        );
    }

    #[test]
    fn the_same_death_has_the_same_notice_and_another_one_another_name() {
        let one = death("pay", Some("https://up.example/dead"));
        assert_eq!(one.notice(None), one.notice(None));
        let name = |death: &Death| death.notice(None).unwrap().key;
        let (mut again, mut later) = (one.clone(), one.clone());
        again.died = Timestamp::from_millis(2_000);
        later.job.attempts = 4;
        let mut taken_in_anew = one.clone();
        taken_in_anew.arrived = Timestamp::from_millis(900);
        assert_eq!(name(&one), name(&again), "a death that is settled again");
        assert_ne!(name(&one), name(&later));
        assert_ne!(name(&one), name(&taken_in_anew), "it begins with the attempts of its line");
        assert_ne!(name(&one), name(&death("bill", Some("https://up.example/dead"))));
    }

    #[test]
    fn the_job_s_own_url_counts_before_its_topic_s_and_notices_tell_nobody() {
        let policy = parse_policy(br#"{"on_dead":"http://topic.example/"}"#).unwrap();
        let to = |death: Death, policy| death.notice(policy).map(|job| job.delivery.callback.to_string());
        let own = || death("pay", Some("http://own.example/"));
        assert_eq!(to(own(), Some(&policy)).as_deref(), Some("http://own.example/"));
        assert_eq!(to(death("pay", None), Some(&policy)).as_deref(), Some("http://topic.example/"));
        assert_eq!(to(death("pay", None), None), None);
        assert_eq!(to(death(NOTICES, Some("http://own.example/")), Some(&policy)), None);
    }
}
