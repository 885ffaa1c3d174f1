//! The field `archive` of a policy: which ended jobs of the topic go to the archive, and whether with their bodies.

use std::collections::BTreeSet;

use ringback_core::contract::{EndedState, EndedStates};
use ringback_core::policy::ArchivePolicy;

use crate::fields::object::{Fields, Mistakes, read};
use crate::fields::values::{field, object};

const STATES: &str = "a list of done, dead, expired, cancelled and purged, each once; an empty list for none";

/// The field `archive`.
pub(super) fn archive(fields: &Fields<'_>, mistakes: &mut Mistakes) -> ArchivePolicy {
    const ALLOWED: &str = "an object with states (a list) and bodies (true or false); each may be left out";
    let Some(archive) = object(fields, "archive", ALLOWED, mistakes) else { return ArchivePolicy::default() };
    archive.check_names("archive.", &["states", "bodies"], mistakes);
    ArchivePolicy {
        states: field(&archive, "archive.states", "is not a list of states", STATES, mistakes, |raw| {
            let names = read::<Vec<String>>(raw)?;
            let kinds: BTreeSet<_> =
                names.iter().map(|name| name.parse::<EndedState>().ok()).collect::<Option<_>>()?;
            (kinds.len() == names.len()).then(|| EndedStates::of(kinds))
        }),
        bodies: field(&archive, "archive.bodies", "is neither", "true or false", mistakes, read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_policy;

    #[test]
    fn a_policy_says_which_ended_jobs_are_archived_and_whether_with_bodies() {
        let of = |json: &str| parse_policy(json.as_bytes()).map(|policy| policy.archive);
        assert_eq!(of("{}").unwrap(), ArchivePolicy::default());
        let both = of(r#"{"archive":{"states":["dead","purged"],"bodies":false}}"#).unwrap();
        let ends = EndedStates::of([EndedState::Dead, EndedState::Purged]);
        assert_eq!(both, ArchivePolicy { states: Some(ends), bodies: Some(false) });
        assert_eq!(of(r#"{"archive":{"states":[]}}"#).unwrap().states, Some(EndedStates::default()));
        for (wrong, field) in [
            (r#"{"archive":["dead"]}"#, "archive"),
            (r#"{"archive":{"states":["lost"]}}"#, "archive.states"),
            (r#"{"archive":{"states":["dead","dead"]}}"#, "archive.states"),
            (r#"{"archive":{"states":"dead"}}"#, "archive.states"),
            (r#"{"archive":{"bodies":1}}"#, "archive.bodies"),
            (r#"{"archive":{"body":true}}"#, "archive.body"),
        ] {
            let problem = of(wrong).unwrap_err();
            let fields: Vec<_> = problem.errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields, [field], "{wrong}");
        }
    }
}
