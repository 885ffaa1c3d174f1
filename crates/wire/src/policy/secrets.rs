//! The signing secrets of a topic: the field `secrets` of a stored policy, and requests and answers to add, list and
//! delete them. Only a policy from a backup has the field; a policy that is put without it keeps the stored secrets.

use std::borrow::Cow;
use std::time::Duration;

use ringback_core::clock::Timestamp;
use ringback_core::job::Topic;
use ringback_core::topic_policy::{MAX_SECRETS, MAX_SECRETS_JSON, Policy, StoredSecret};
use ringback_core::written_time::parse_time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{SECRETS, parse_policy};
use crate::declare::request;
use crate::field_parsers::object::{Fields, Mistakes, open, read};
use crate::schema::{SealedValue, SecretIdText, SecretRetention, SigningSecretText, Time};

/// How long the former secrets go on signing, unless the caller says so.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest sealed secret, in bytes. So the most secrets stay within [`MAX_SECRETS_JSON`].
const MAX_SEALED: usize = 256;
const NOT_SEALED: &str = "they are not sealed secrets";
const ALLOWED: &str =
    "at most 8 sealed secrets, as GET /v1/export/topics prints them; leave it out to keep those of the topic";

/// A secret of a topic, sealed.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SealedSecret {
    /// Its id.
    #[schema(value_type = SecretIdText)]
    id: String,
    /// The secret, sealed for this topic and id.
    #[schema(value_type = SealedValue)]
    sealed: String,
    /// When it was added.
    #[schema(value_type = Time)]
    created_at: String,
    /// When it stops signing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Time>)]
    until: Option<String>,
}

impl SealedSecret {
    fn of(secret: &StoredSecret) -> Self {
        let StoredSecret { id, sealed, created, until } = secret;
        Self {
            id: id.to_string(),
            sealed: sealed.to_string(),
            created_at: created.to_string(),
            until: until.map(|until| until.to_string()),
        }
    }

    fn parse(self) -> Result<StoredSecret, &'static str> {
        let time = |text: &str| parse_time(text).map_err(|_| "created_at or until is not a time");
        let (created, until) = (time(&self.created_at)?, self.until.as_deref().map(time).transpose()?);
        let id = self.id.parse().map_err(|_| NOT_SEALED)?;
        let is_short = self.sealed.len() <= MAX_SEALED;
        is_short.then(|| StoredSecret { id, sealed: self.sealed.into(), created, until }).ok_or(NOT_SEALED)
    }
}

/// The field `secrets` of a policy; `None` if missing, or wrong, which adds a mistake that does not show it.
pub(super) fn secrets(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Vec<StoredSecret>> {
    // The value is not shown: it may be a secret that is not sealed.
    parse(fields.get(SECRETS)?).map_err(|why| mistakes.add(SECRETS, why, ALLOWED)).ok()
}

fn parse(raw: &RawValue) -> Result<Vec<StoredSecret>, &'static str> {
    if raw.get().len() > MAX_SECRETS_JSON {
        return Err("they have more than 4 KiB");
    }
    let written = read::<Vec<SealedSecret>>(raw).filter(|all| all.len() <= MAX_SECRETS).ok_or(NOT_SEALED)?;
    let secrets = written.into_iter().map(SealedSecret::parse).collect::<Result<Vec<_>, _>>()?;
    let is_new = |(i, secret): (usize, &StoredSecret)| secrets[..i].iter().all(|one| one.id != secret.id);
    if secrets.iter().enumerate().all(is_new) { Ok(secrets) } else { Err("two have the same id") }
}

/// The JSON of a policy without its secrets.
pub(super) fn without_secrets(policy: &Policy) -> Cow<'_, str> {
    without_field(policy.written().into(), SECRETS)
}

/// The JSON of a policy without a field.
pub(super) fn without_field<'a>(written: Cow<'a, str>, field: &str) -> Cow<'a, str> {
    if !written.contains(field) {
        return written;
    }
    let fields = open(written.as_bytes()).expect("a policy keeps the JSON that it was parsed from");
    let others = fields.iter().filter(|(name, _)| *name != field);
    let others: Vec<_> = others.map(|(name, raw)| format!("\"{name}\":{}", raw.get())).collect();
    Cow::Owned(format!("{{{}}}", others.join(",")))
}

/// Whether a policy has the field `secrets`, even as an empty list.
pub fn brings_secrets(policy: &Policy) -> bool {
    !policy.secrets.is_empty()
        || open(policy.written().as_bytes()).is_ok_and(|fields| fields.get(SECRETS).is_some())
}

/// A policy with these secrets in place of its own.
///
/// # Panics
/// If they cannot be those of a policy: more than [`MAX_SECRETS`], two with the same id, or too long.
pub fn with_secrets(policy: &Policy, secrets: &[StoredSecret]) -> Policy {
    let others = without_secrets(policy);
    let written: Vec<_> = secrets.iter().map(SealedSecret::of).collect();
    let written = serde_json::to_string(&written).expect("plain data always serialises");
    let others = others.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    let json = match (others, secrets) {
        (others, []) => format!("{{{others}}}"),
        ("", _) => format!("{{\"{SECRETS}\":{written}}}"),
        (others, _) => format!("{{{others},\"{SECRETS}\":{written}}}"),
    };
    parse_policy(json.as_bytes()).expect("a policy stays valid with the secrets of another")
}

request! {
    /// A secret to add.
    #[example {"keep": "24h"}]
    pub struct NewSecretRequest(open_or_empty) {
        /// The secret. If it is left out, one of 32 random bytes is made.
        secret: SigningSecretText;
        /// How long the former secrets of the topic go on signing beside the new one; 24 h by default. 0 ends them at
        /// once.
        keep: SecretRetention, or KEEP;
    }
}

/// A secret that was added. It is shown only here.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct CreatedSecret {
    /// Its id.
    #[schema(example = "sec_01KAR8Z6V5Q0M5W8C1T3N9X2YB")]
    pub id: String,
    /// The secret, for the receiver.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub secret: String,
}

/// The secrets of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretsResponse {
    /// The topic.
    pub topic: String,
    /// Its secrets, the newest one first.
    pub items: Vec<SecretDetails>,
}

/// A secret of a topic, without the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretDetails {
    /// Its id.
    pub id: String,
    /// When it was added.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it stops signing; null while it is not replaced.
    #[schema(format = DateTime)]
    pub until: Option<String>,
    /// The id of the master key that seals it.
    pub master_key: String,
}

impl SecretsResponse {
    /// The answer for a topic: the secrets that sign at `now`.
    pub fn new(topic: &Topic, policy: Option<&Policy>, now: Timestamp) -> Self {
        let item = |secret: &StoredSecret| SecretDetails {
            id: secret.id.to_string(),
            created_at: secret.created.to_string(),
            until: secret.until.map(|until| until.to_string()),
            master_key: secret.sealed.split('.').next().unwrap_or_default().to_owned(),
        };
        let items = policy.into_iter().flat_map(|policy| policy.signing_secrets(now).map(item)).collect();
        Self { topic: topic.to_string(), items }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringback_core::topic_policy::SecretId;

    fn policy(json: &str) -> Policy {
        parse_policy(json.as_bytes()).unwrap()
    }

    fn secret(id: &str, until: Option<u64>) -> StoredSecret {
        StoredSecret {
            id: SecretId::of(id),
            sealed: format!("k.{id}").into(),
            created: Timestamp::from_millis(1_000),
            until: until.map(Timestamp::from_millis),
        }
    }

    #[test]
    fn secrets_are_added_to_a_policy_and_taken_from_it() {
        let both = [secret("b", None), secret("a", Some(5_000))];
        for json in ["{}", r#"{"timeout":2.5,"expect_body":"secrets"}"#] {
            let with = with_secrets(&policy(json), &both);
            assert_eq!(with.secrets, both);
            assert_eq!(parse_policy(with.written().as_bytes()).unwrap(), with, "as it is stored");
            assert_eq!(without_secrets(&with), json);
            assert_eq!(with_secrets(&with, &both[..1]).secrets, both[..1]);
            assert_eq!(with_secrets(&with, &[]), policy(json));
        }
        assert_eq!(
            with_secrets(&policy("{}"), &both).written(),
            r#"{"secrets":[{"created_at":"1970-01-01T00:00:01.000Z","id":"sec_b","sealed":"k.b"},{"created_at":"1970-01-01T00:00:01.000Z","id":"sec_a","sealed":"k.a","until":"1970-01-01T00:00:05.000Z"}]}"#
        );
    }

    #[test]
    fn a_list_that_is_no_list_of_sealed_secrets_is_refused() {
        let one = r#"{"id":"sec_a","sealed":"k.a","created_at":"1970-01-01T00:00:01Z"}"#;
        assert_eq!(policy(&format!(r#"{{"secrets":[{one}]}}"#)).secrets.len(), 1);
        let nine: Vec<_> = (0..9).map(|n| one.replace("sec_a", &format!("sec_a{n}"))).collect();
        let long = one.replace("k.a", &format!("k.{}", "a".repeat(MAX_SEALED - 1)));
        for secrets in [
            "5".to_owned(),
            r#"["whsec_a"]"#.to_owned(),
            format!("[{one},{one}]"),
            format!("[{}]", nine.join(",")),
            format!("[{}]", one.replace("sec_a", "a")),
            format!("[{}]", one.replace("00:01Z", "")),
            format!("[{}]", one.replace("sealed", "secret")),
            format!("[{long}]"),
        ] {
            let problem = parse_policy(format!(r#"{{"secrets":{secrets}}}"#).as_bytes()).expect_err(&secrets);
            assert_eq!((problem.status, problem.errors[0].field.as_str()), (422, "secrets"), "{secrets}");
            assert!(!problem.errors[0].detail.contains("whsec"), "{}", problem.errors[0].detail);
        }
    }

    #[test]
    fn the_longest_policy_has_room_for_the_most_secrets() {
        let longest = policy(&format!(
            r#"{{"headers":{{"x":"{}"}},"expect_body":"{}"}}"#,
            r"\\".repeat(8_000),
            "a".repeat(347)
        ));
        assert_eq!(longest.written().len(), ringback_core::topic_policy::MAX_POLICY);
        let sealed = "k".repeat(MAX_SEALED);
        let secret = |n: usize| StoredSecret {
            sealed: sealed.as_str().into(),
            ..secret(&format!("{n:060}"), Some(5_000))
        };
        let secrets: Vec<_> = (0..MAX_SECRETS).map(secret).collect();
        assert_eq!(with_secrets(&longest, &secrets[..1]).secrets, secrets[..1]);
        let with = with_secrets(&longest, &secrets);
        assert_eq!(with.secrets, secrets);
        assert_eq!(with_secrets(&with, &[]), longest);
    }

    #[test]
    fn a_request_says_which_secret_and_for_how_long_the_former_ones_stay() {
        let parse = |json: &str| NewSecretRequest::parse(json.as_bytes());
        let day = Duration::from_secs(86_400);
        assert_eq!(parse("").unwrap(), NewSecretRequest { secret: None, keep: day });
        let given = parse(r#"{"secret":"whsec_a","keep":"0s"}"#).unwrap();
        assert_eq!(given, NewSecretRequest { secret: Some("whsec_a".to_owned()), keep: Duration::ZERO });
        for (json, field) in [
            (r#"{"secret":5}"#, "secret"),
            (r#"{"keep":"31d"}"#, "keep"),
            (r#"{"keep":"-1s"}"#, "keep"),
            (r#"{"key":"a"}"#, "key"),
            (r#"{"secret":["whsec_a"]}"#, "secret"),
        ] {
            let problem = parse(json).expect_err(json);
            assert_eq!((problem.status, problem.errors[0].field.as_str()), (422, field), "{json}");
            assert!(!problem.errors[0].detail.contains("whsec"), "{}", problem.errors[0].detail);
        }
        let problem = parse(r#""whsec_a""#).expect_err("a text");
        assert!(problem.status == 400 && !problem.detail.contains("whsec"), "{}", problem.detail);
    }

    #[test]
    fn a_list_shows_what_signs_now_and_no_secret() {
        let policy = with_secrets(&policy("{}"), &[secret("b", None), secret("a", Some(5_000))]);
        let shown = |now| {
            let answer =
                SecretsResponse::new(&"t".parse().unwrap(), Some(&policy), Timestamp::from_millis(now));
            serde_json::to_string(&answer).unwrap()
        };
        assert_eq!(
            shown(5_000),
            r#"{"topic":"t","items":[{"id":"sec_b","created_at":"1970-01-01T00:00:01.000Z","until":null,"master_key":"k"}]}"#
        );
        assert!(shown(4_999).contains("sec_a"));
        assert!(!shown(4_999).contains("k.a"));
        assert_eq!(SecretsResponse::new(&"t".parse().unwrap(), None, Timestamp::from_millis(1)).items, []);
    }
}
