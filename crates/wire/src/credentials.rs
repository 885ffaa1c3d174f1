//! Credentials: the request to put one, the answers that show them without their secrets, and the lines of an export.
//! `ringback_core` has the stored form.

use ringback_core::credential::{
    Basic, ClientCertificate, Contents, Credential, CredentialKey, MAX_CONTENTS, MAX_ORIGINS, MAX_SEALED,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::field_parsers::object::{Fields, Mistakes, open, read};
use super::field_parsers::values::parsed;
use super::policy::parse_origin;
use super::problem::Problem;

const TO: &str =
    "a list of 1 to 32 origins, which are scheme, host and port, such as [\"https://bank.example\"]";
const BEARER: &str = "a token of 1 to 4096 visible ASCII characters (RFC 6750)";
const BASIC: &str = "an object with user and password, each at most 1024 bytes without control characters, the user without a colon (RFC 7617)";
const CERTIFICATE: &str =
    "a certificate and those between it and its authority, in the PEM form (RFC 7468), with key beside it";
const KEY: &str =
    "the private key of the certificate, in the PEM form (RFC 7468), with certificate beside it";
const CA: &str = "certificate authorities in the PEM form (RFC 7468)";
const SEALED: &str = "what GET /v1/export/credentials prints of this credential; leave it out otherwise";
const NONE: &str = "at least one of bearer, basic, certificate with key, and ca";

/// A parsed request to put a credential.
pub struct NewCredential {
    /// The origins whose callbacks carry it, sorted.
    pub to: Vec<String>,
    pub contents: NewContents,
}

pub enum NewContents {
    /// In the clear.
    Plain(Box<Contents>),
    /// Sealed before, from an export.
    Sealed(Box<str>),
}

/// Parses the request to put a credential. `check_tls` returns what is wrong with certificates, and the name of the
/// field. It is called only if nothing else is wrong, and not for sealed contents.
///
/// # Errors
/// A 400 problem if it is not a JSON object, 422 with all wrong fields. The messages show no secret.
pub fn parse_credential(
    json: &[u8],
    check_tls: impl Fn(&Contents) -> Result<(), (&'static str, String)>,
) -> Result<NewCredential, Problem> {
    let fields = open(json)?;
    let mut mistakes = Mistakes::default();
    let known = ["to", "bearer", "basic", "certificate", "key", "ca", "sealed"];
    fields.check_names("", &known, &mut mistakes);
    let to = to(&fields, &mut mistakes);
    if let Some(raw) = fields.get("sealed") {
        let sealed = read::<String>(raw).filter(|text| text.len() <= MAX_SEALED);
        if known[1..6].iter().any(|name| fields.get(name).is_some()) || sealed.is_none() {
            mistakes.add(
                "sealed",
                "it is not a sealed credential, or given together with its contents",
                SEALED,
            );
        }
        let sealed = NewContents::Sealed(sealed.unwrap_or_default().into());
        return mistakes.or(NewCredential { to, contents: sealed });
    }
    let contents = contents(&fields, &mut mistakes);
    let has_tls = contents.client.is_some() || contents.ca.is_some();
    if has_tls && to.iter().any(|origin| !origin.starts_with("https://")) {
        mistakes.add("to", "an origin of a certificate is not https", "origins of https alone");
    }
    if mistakes.is_empty() && contents.kinds().is_empty() {
        mistakes.add("bearer", "missing, and so is everything else that proves who calls", NONE);
    }
    if mistakes.is_empty() && contents.json().len() > MAX_CONTENTS {
        let detail = format!("the credential has {} bytes as JSON", contents.json().len());
        let field = if contents.client.is_some() { "certificate" } else { "ca" };
        mistakes.add(field, detail, format_args!("at most {MAX_CONTENTS} bytes in all"));
    }
    if mistakes.is_empty()
        && let Err((field, detail)) = check_tls(&contents)
    {
        let allowed = [("certificate", CERTIFICATE), ("key", KEY), ("ca", CA)];
        let allowed = allowed.iter().find(|(name, _)| *name == field).map_or(NONE, |(_, allowed)| *allowed);
        mistakes.add(field, detail, allowed);
    }
    mistakes.or(NewCredential { to, contents: NewContents::Plain(Box::new(contents)) })
}

fn to(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Vec<String> {
    if fields.get("to").is_none() {
        mistakes.add("to", "missing: a credential goes only where it says", TO);
    }
    let origins = parsed(fields, "to", TO, mistakes, |raw| {
        let texts = read::<Vec<String>>(raw).filter(|texts| (1..=MAX_ORIGINS).contains(&texts.len()))?;
        texts.iter().map(|text| parse_origin(text)).collect::<Option<Vec<_>>>()
    });
    let mut origins = origins.unwrap_or_default();
    origins.sort_unstable();
    origins.dedup();
    origins
}

fn contents(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Contents {
    let bearer = hidden(fields, "bearer", BEARER, mistakes, |text| {
        (1..=4096).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    let basic = fields.get("basic").and_then(|raw| {
        let Ok(basic) = serde_json::from_str::<Fields<'_>>(raw.get()) else {
            mistakes.add("basic", "it has the wrong form", BASIC);
            return None;
        };
        basic.check_names("basic.", &["user", "password"], mistakes);
        let is_plain = |text: &str| text.len() <= 1024 && !text.chars().any(char::is_control);
        let user =
            hidden(&basic, "basic.user", BASIC, mistakes, |text| is_plain(text) && !text.contains(':'));
        let password = hidden(&basic, "basic.password", BASIC, mistakes, is_plain);
        if mistakes.is_empty() && (user.is_none() || password.is_none()) {
            mistakes.add("basic", "user or password is missing", BASIC);
        }
        Some(Basic { user: user?, password: password? })
    });
    if bearer.is_some() && basic.is_some() {
        mistakes.add("basic", "given together with bearer", "one of bearer and basic");
    }
    let chain = hidden(fields, "certificate", CERTIFICATE, mistakes, |_| true);
    let key = hidden(fields, "key", KEY, mistakes, |_| true);
    let client = match (chain, key) {
        (Some(chain), Some(key)) => Some(ClientCertificate { chain, key }),
        (None, None) => None,
        (Some(_), None) => {
            mistakes.add("key", "missing beside certificate", KEY);
            None
        }
        (None, Some(_)) => {
            mistakes.add("certificate", "missing beside key", CERTIFICATE);
            None
        }
    };
    Contents { bearer, basic, client, ca: hidden(fields, "ca", CA, mistakes, |_| true) }
}

/// The text of a field whose mistake does not show it; the last part of `path` is the field's name. `None` if the field
/// is missing, or if it is not valid, which adds the mistake.
fn hidden(
    fields: &Fields<'_>,
    path: &str,
    allowed: &str,
    mistakes: &mut Mistakes,
    is_valid: impl Fn(&str) -> bool,
) -> Option<String> {
    let read_text = |raw: &RawValue| read::<String>(raw).filter(|text| is_valid(text));
    let text = fields.get(path.rsplit('.').next()?).map(read_text)?;
    if text.is_none() {
        mistakes.add(path, "it has the wrong form", allowed);
    }
    text
}

/// A credential, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialResponse {
    /// Whose it is, in a list of all tenants; absent if it belongs to none, and in other answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its name.
    pub name: String,
    /// The origins whose callbacks carry it.
    pub to: Vec<String>,
    /// What it has: `bearer`, `basic`, `certificate`, `ca`.
    pub kinds: Vec<String>,
    /// The id of the master key that has sealed it.
    pub master_key: String,
    /// When it was put.
    #[schema(format = DateTime)]
    pub created_at: String,
}

impl CredentialResponse {
    /// The answer for a credential.
    pub fn new(key: &CredentialKey, credential: &Credential) -> Self {
        let Credential { to, kinds, created, sealed } = credential;
        let master_key = sealed.split('.').next().unwrap_or_default().to_owned();
        let kinds = kinds.iter().map(ToString::to_string).collect();
        Self {
            tenant: None,
            name: key.name.to_string(),
            to: to.clone(),
            kinds,
            master_key,
            created_at: created.to_string(),
        }
    }
}

/// The credentials of a tenant, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialsResponse {
    /// The credentials.
    pub items: Vec<CredentialResponse>,
}

/// A credential on its way to another installation: its name, and the request to put it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialLine {
    /// The tenant whose it is; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its name.
    pub credential: String,
    /// The origins whose callbacks carry it.
    pub to: Vec<String>,
    /// Its secrets, sealed with a master key for its tenant, its name and its origins.
    pub sealed: String,
}

impl CredentialLine {
    /// The line of a credential.
    pub fn new(key: &CredentialKey, credential: &Credential) -> Self {
        let CredentialKey { tenant, name } = key;
        let tenant = tenant.as_ref().map(ToString::to_string);
        let Credential { to, sealed, .. } = credential;
        Self { tenant, credential: name.to_string(), to: to.clone(), sealed: sealed.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringback_core::clock::Timestamp;
    use ringback_core::credential::Kind;

    fn parse(json: &str) -> Result<NewCredential, Problem> {
        parse_credential(json.as_bytes(), |_| Ok(()))
    }

    fn plain(json: &str) -> (Vec<String>, Contents) {
        match parse(json).unwrap_or_else(|problem| panic!("{problem:?}")) {
            NewCredential { to, contents: NewContents::Plain(contents) } => (to, *contents),
            NewCredential { contents: NewContents::Sealed(_), .. } => panic!("it is sealed"),
        }
    }

    #[test]
    fn a_credential_has_what_its_request_has() {
        let (to, contents) =
            plain(r#"{"to":["HTTPS://Bank.Example:443/","http://b","http://b"],"bearer":"t0k.en~+/="}"#);
        assert_eq!(to, ["http://b", "https://bank.example"]);
        assert_eq!((contents.kinds(), contents.bearer.as_deref()), (vec![Kind::Bearer], Some("t0k.en~+/=")));
        let (_, contents) = plain(
            r#"{"to":["https://b"],"basic":{"user":"u","password":":p"},"certificate":"c","key":"k","ca":"a"}"#,
        );
        assert_eq!(contents.kinds(), [Kind::Basic, Kind::Certificate, Kind::Ca]);
        assert!(Contents::parse(contents.json().as_bytes()) == Some(contents));
        let sealed = parse(r#"{"to":["https://b"],"sealed":"k1.abc"}"#).unwrap().contents;
        assert!(matches!(sealed, NewContents::Sealed(text) if &*text == "k1.abc"));
    }

    #[test]
    fn what_is_wrong_with_a_credential_is_named_and_not_shown() {
        let long = format!(r#"{{"to":["https://b"],"ca":"{}"}}"#, "x".repeat(MAX_CONTENTS));
        for (json, field) in [
            (r#"{"bearer":"hidden"}"#, "to"),
            (r#"{"to":[],"bearer":"hidden"}"#, "to"),
            (r#"{"to":["https://b/path"],"bearer":"hidden"}"#, "to"),
            (r#"{"to":["*"],"bearer":"hidden"}"#, "to"),
            (r#"{"to":["https://b"]}"#, "bearer"),
            (r#"{"to":["https://b"],"bearer":"hidden hidden"}"#, "bearer"),
            (r#"{"to":["https://b"],"bearer":""}"#, "bearer"),
            (r#"{"to":["https://b"],"basic":{"user":"hi:dden","password":"hidden"}}"#, "basic.user"),
            (r#"{"to":["https://b"],"basic":{"user":"hidden"}}"#, "basic"),
            (r#"{"to":["https://b"],"basic":"hidden"}"#, "basic"),
            (r#"{"to":["https://b"],"bearer":"t","basic":{"user":"u","password":"hidden"}}"#, "basic"),
            (r#"{"to":["https://b"],"certificate":"hidden"}"#, "key"),
            (r#"{"to":["https://b"],"key":"hidden"}"#, "certificate"),
            (r#"{"to":["http://b"],"ca":"hidden"}"#, "to"),
            (r#"{"to":["https://b"],"sealed":5}"#, "sealed"),
            (r#"{"to":["https://b"],"sealed":"k.a","bearer":"hidden"}"#, "sealed"),
            (r#"{"to":["https://b"],"bearer":"t","token":"x"}"#, "token"),
            (long.as_str(), "ca"),
        ] {
            let problem = parse(json).err().unwrap_or_else(|| panic!("{json} was taken"));
            assert_eq!((problem.status, &*problem.errors[0].field), (422, field), "{json}");
            assert!(!format!("{problem:?}").contains("hidden"), "{problem:?}");
        }
        let refused = parse_credential(br#"{"to":["https://b"],"ca":"x"}"#, |_| Err(("ca", "no".to_owned())));
        assert_eq!(refused.err().unwrap().errors[0].allowed, CA);
    }

    #[test]
    fn a_line_of_an_export_has_what_is_stored() {
        let credential = Credential {
            to: vec!["https://b".to_owned()],
            kinds: vec![Kind::Basic, Kind::Ca],
            sealed: "k1.abc".into(),
            created: Timestamp::from_millis(1_763_600_000_000),
        };
        let key: CredentialKey = "~acme/bank".parse().unwrap();
        let line = serde_json::to_string(&CredentialLine::new(&key, &credential)).unwrap();
        assert_eq!(line, r#"{"tenant":"acme","credential":"bank","to":["https://b"],"sealed":"k1.abc"}"#);
    }
}
