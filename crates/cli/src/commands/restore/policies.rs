//! Decides what to do with the policy of a topic in a backup: it is set, it is there already, or the topic has another
//! one, which stays. Compares policies without their sealed secrets. `topics` makes the calls.

use ringback_core::clock::{Clock as _, SystemClock, Timestamp};
use ringback_core::job::{MASK, is_masked, is_secret};
use ringback_core::written_time::parse_time;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

const SECRETS: &str = "secrets";
const SEALED_HEADERS: &str = "sealed_headers";
const CREDENTIALS: &str = "credentials";

/// Whether the sealed secrets in a backup are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrets {
    Restored,
    LeftOut,
}

/// A policy: its secrets apart from everything else.
pub(super) struct Policy {
    others: Map<String, Value>,
    /// The values of its secret headers, if they are sealed. Then `others` have masks.
    sealed_headers: Option<Value>,
    secrets: Vec<Value>,
}

/// Identifies a policy without keeping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// A hash of everything but secrets; `None` if there is nothing else.
    others: Option<[u8; 32]>,
    /// A hash of the secrets without their sealed values; `None` without secrets.
    secrets: Option<[u8; 32]>,
}

/// What to do with the policy of a topic in a backup.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Put,
    Present,
    /// The topic has another one, which stays.
    Other,
    /// The topic has another one, which stays, and no secrets: its jobs would be sent unsigned.
    Unsigned,
}

impl Policy {
    /// Parses a policy; `None` if it is not a JSON object. Secrets that no longer sign are left out, and with
    /// [`Secrets::LeftOut`] all secrets, sealed headers and credentials.
    pub(super) fn parse(json: &str, secrets: Secrets) -> Option<Self> {
        Self::at(json, secrets, SystemClock.now())
    }

    fn at(json: &str, secrets: Secrets, now: Timestamp) -> Option<Self> {
        let mut others: Map<String, Value> = serde_json::from_str(json).ok()?;
        let mut sealed_headers = others.remove(SEALED_HEADERS);
        if secrets == Secrets::LeftOut && sealed_headers.take().is_some() {
            each_header(&mut others, |headers| headers.retain(|name, value| !is_mask(name, value)));
        }
        if secrets == Secrets::LeftOut {
            others.remove(CREDENTIALS);
        }
        let all = match others.remove(SECRETS) {
            Some(Value::Array(all)) if secrets == Secrets::Restored => all,
            _ => Vec::new(),
        };
        let secrets = all.into_iter().filter(|secret| signs_at(secret, now)).collect();
        Some(Self { others, sealed_headers, secrets })
    }

    /// Identifies the policy. The values of secret headers and the sealed values of secrets are ignored, since they
    /// differ each time that they are sealed.
    pub(super) fn identity(&self) -> Identity {
        let digest = |text: String| <[u8; 32]>::from(Sha256::digest(text));
        let mut others = self.others.clone();
        each_header(&mut others, |headers| {
            let secret = headers.iter_mut().filter(|(name, _)| is_secret(name));
            secret.for_each(|(_, value)| *value = MASK.into());
        });
        let others = (!others.is_empty()).then(|| digest(Value::from(others).to_string()));
        let named = |secret: &Value| {
            let mut secret = secret.clone();
            secret.as_object_mut().map(|fields| fields.remove("sealed"));
            secret
        };
        let secrets: Vec<_> = self.secrets.iter().map(named).collect();
        Identity { others, secrets: (!secrets.is_empty()).then(|| digest(Value::from(secrets).to_string())) }
    }

    /// The JSON of the policy, for the server.
    pub(super) fn json(mut self) -> String {
        if !self.secrets.is_empty() {
            self.others.insert(SECRETS.to_owned(), self.secrets.into());
        }
        self.others.extend(self.sealed_headers.map(|sealed| (SEALED_HEADERS.to_owned(), sealed)));
        Value::from(self.others).to_string()
    }
}

impl Identity {
    /// What to do with this policy of a backup, if the topic has the policy `stored` now.
    pub(super) fn fate(self, stored: Option<Self>) -> Fate {
        let Some(stored) = stored else { return Fate::Put };
        let brings_none = self.secrets.is_none();
        let (are_others_same, are_secrets_same) =
            (stored.others == self.others, brings_none || stored.secrets == self.secrets);
        if are_others_same && are_secrets_same {
            return Fate::Present;
        }
        // Nothing is lost: what is put keeps the secrets of the topic if it brings none.
        let (has_no_others, has_no_secrets) = (stored.others.is_none(), stored.secrets.is_none());
        if (are_others_same || has_no_others) && (are_secrets_same || has_no_secrets) {
            return Fate::Put;
        }
        if has_no_secrets && !brings_none { Fate::Unsigned } else { Fate::Other }
    }
}

fn each_header(policy: &mut Map<String, Value>, change: impl FnOnce(&mut Map<String, Value>)) {
    if let Some(headers) = policy.get_mut("headers").and_then(Value::as_object_mut) {
        change(headers);
    }
}

fn is_mask(name: &str, value: &Value) -> bool {
    value.as_str().is_some_and(|value| is_masked(name, value))
}

/// Whether a secret signs now; so does one whose end cannot be read.
fn signs_at(secret: &Value, now: Timestamp) -> bool {
    let until = secret.get("until").and_then(Value::as_str).and_then(|text| parse_time(text).ok());
    until.is_none_or(|until| now < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = r#"{"created_at":"2026-01-01T00:00:00Z","id":"sec_a","sealed":"k1.a"}"#;

    fn policy(json: &str) -> Policy {
        Policy::at(json, Secrets::Restored, parse_time("2026-06-01T00:00:00Z").unwrap()).unwrap()
    }

    fn fate(backup: &str, stored: &str) -> Fate {
        policy(backup).identity().fate(Some(policy(stored).identity()))
    }

    #[test]
    fn a_policy_is_put_where_nothing_is_lost_by_it() {
        let with = |secret: &str| format!(r#"{{"timeout":"5s","secrets":[{secret}]}}"#);
        let (plain, signed) = (r#"{"timeout":"5s"}"#, with(SECRET));
        let only = format!(r#"{{"secrets":[{SECRET}]}}"#);
        let others = with(&SECRET.replace("sec_a", "sec_b"));
        assert_eq!(policy(plain).identity().fate(None), Fate::Put);
        for (backup, stored, expected) in [
            (plain, r#"{ "timeout" : "5s" }"#, Fate::Present),
            (plain, signed.as_str(), Fate::Present),
            (&signed, &with(&SECRET.replace("k1.a", "k2.b")), Fate::Present),
            (&signed, plain, Fate::Put),
            (&signed, "{}", Fate::Put),
            (&signed, r#"{"timeout":"6s"}"#, Fate::Unsigned),
            (&signed, &others, Fate::Other),
            (&signed, &only, Fate::Put),
            (plain, &only, Fate::Put),
            (plain, "{}", Fate::Put),
            (plain, r#"{"timeout":"6s"}"#, Fate::Other),
            ("{}", &only, Fate::Present),
            ("{}", &signed, Fate::Other),
            (&only, plain, Fate::Unsigned),
        ] {
            assert_eq!(fate(backup, stored), expected, "{backup} over {stored}");
        }
    }

    #[test]
    fn secrets_that_are_over_or_left_out_are_no_part_of_it() {
        let over = SECRET.replace("sealed", r#"until":"2026-05-31T00:00:00Z","sealed"#);
        let json = format!(r#"{{"timeout":"5s","secrets":[{over}]}}"#);
        assert_eq!(policy(&json).json(), r#"{"timeout":"5s"}"#);
        let json = format!(r#"{{"secrets":[{SECRET}],"timeout":"5s"}}"#);
        assert_eq!(policy(&json).json(), json);
        assert_eq!(Policy::parse(&json, Secrets::LeftOut).unwrap().json(), r#"{"timeout":"5s"}"#);
    }

    #[test]
    fn sealed_headers_are_restored_or_left_out_and_count_as_masks() {
        let sealed = |text: &str| {
            format!(
                r#"{{"headers":{{"authorization":"{MASK}","x-a":"1"}},"headers_to":["*"],"sealed_headers":"{text}"}}"#
            )
        };
        let plain = r#"{"headers":{"authorization":"Bearer 1","x-a":"1"},"headers_to":["*"]}"#;
        assert_eq!(policy(&sealed("k1.a")).json(), sealed("k1.a"));
        let left = Policy::parse(&sealed("k1.a"), Secrets::LeftOut).unwrap().json();
        assert_eq!(left, r#"{"headers":{"x-a":"1"},"headers_to":["*"]}"#);
        assert_eq!(Policy::parse(plain, Secrets::LeftOut).unwrap().json(), plain, "it is not sealed");
        for (backup, stored, expected) in [
            (sealed("k1.a"), sealed("k2.b"), Fate::Present),
            (plain.to_owned(), sealed("k1.a"), Fate::Present),
            (sealed("k1.a"), plain.to_owned(), Fate::Present),
            (sealed("k1.a"), sealed("k1.a").replace("x-a", "x-b"), Fate::Other),
        ] {
            assert_eq!(fate(&backup, &stored), expected, "{backup} over {stored}");
        }
    }
}
