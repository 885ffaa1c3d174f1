//! The log of transitions on Redis: while it is on, scripts return the transitions of jobs beside their answers, and
//! these are taken off the answers and logged here. While it is off, calls and answers are not changed.

use redis::Value;
use ringback_core::job::{JobKey, Topic};
use ringback_core::state::State;
use ringback_core::store_types::{LoggedTransition, StoreError, transition_log};

use super::reply::{self, take};
use super::script::{Returns, Script};

/// Whether a call of the script has to return its transitions.
pub(crate) fn wanted(script: &Script) -> Returns {
    if transition_log::is_on() && script.takes_transitions() {
        Returns::WithTransitions
    } else {
        Returns::Plain
    }
}

/// Returns the script's own answer, and logs the transitions beside it. Fails with `Unreadable` if there are none.
pub(crate) fn answer(answer: Value, returns: Returns) -> Result<Value, StoreError> {
    match returns {
        Returns::Plain => Ok(answer),
        Returns::WithTransitions => {
            let Ok([answer, transitions]) = <[Value; 2]>::try_from(take::list(answer)?) else {
                return Err(StoreError::Unreadable("an answer with transitions"));
            };
            log(transitions);
            Ok(answer)
        }
    }
}

/// Name, states before and after, topic, id and reason.
type Packed = (String, i64, i64, String, String, String);

/// Logs the transitions that can be read. The others are skipped: the call itself has succeeded.
fn log(transitions: Value) {
    match reply::read::<Vec<Packed>>(transitions, "transitions") {
        Ok(transitions) => {
            transition_log::write(&transitions.into_iter().filter_map(unpack).collect::<Vec<_>>());
        }
        Err(error) => tracing::debug!(%error, "transitions that were taken cannot be logged"),
    }
}

fn unpack((name, from, to, topic, id, reason): Packed) -> Option<LoggedTransition> {
    let state = |code| if code == 0 { None } else { reply::state(code).ok() };
    let (from, to): (Option<State>, Option<State>) = (state(from), state(to));
    let key = JobKey { topic: Topic::from_stored(&topic)?, id: id.parse().ok()? };
    let reason = Some(reason).filter(|reason| !reason.is_empty()).map(Into::into);
    Some(LoggedTransition { key, name: name.parse().ok()?, from, to, reason })
}

#[cfg(test)]
mod tests {
    use ringback_core::store_types::TransitionName;

    use super::*;

    #[test]
    fn an_edge_is_read_with_its_states_and_its_reason() {
        let packed = |name: &str, to, reason: &str| {
            (name.to_owned(), 3, to, "pay".to_owned(), "order-1".to_owned(), reason.to_owned())
        };
        let transition = unpack(packed("bury", 5, "gone")).unwrap();
        assert_eq!(
            (transition.name, transition.key.to_string().as_str()),
            (TransitionName::Bury, "pay/order-1")
        );
        assert_eq!((transition.from, transition.to), (Some(State::Reserved), Some(State::Dead)));
        assert_eq!(transition.reason.as_deref(), Some("gone"));
        let transition = unpack(packed("evict", 0, "")).unwrap();
        assert_eq!((transition.to, transition.reason), (None, None));
        assert_eq!(unpack(packed("dance", 5, "")), None);
    }
}
