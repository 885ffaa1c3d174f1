//! The keys of callers: the request to make one, and the answers that show them. `ringback_core` has the stored form.

use std::net::Ipv6Addr;

use ringback_core::access::{AccessKey, Grant, MAX_ENTRIES, Scope};
use ringback_core::clock::Timestamp;
use ringback_core::job::{Tenant, Topic, without_root};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::schema::ArrayBuilder;

use super::declare::request;
use super::field_parsers::object::{Mistakes, open, read, shown};
use super::kinds::{Text, kinds, list, valid};
use super::problem::Problem;
use super::schema::{HostName, Network, TenantName, Time, TopicName};

const SCOPES: &str = "a list of submit, consume, read, manage or import, each once";
const TOPICS: &str = "a list of 1 to 32 topics; omit it for all of the tenant";
const DESTINATIONS: &str =
    "a list of 1 to 32 host names in lower case, without port; omit it for all that the installation allows";
const NETWORKS: &str = "a list of 1 to 32 networks, such as 10.1.0.0/16; omit it for all";

request! {
    /// What a key allows, and what it is limited to.
    #[example {"tenant": "acme", "scopes": ["submit", "read"], "destinations": ["hooks.acme.example"]}]
    pub struct NewKeyRequest(open) {
        /// The tenant whose topics and jobs it is for. If it is left out, those without a tenant.
        tenant: Text<TenantName, Tenant> [Tenant::ALLOWED];
        /// What it allows. `submit`: submit, cancel, reschedule and run jobs. `consume`: reserve and settle pull jobs.
        /// `read`: see jobs, topics, counts and events. `manage`: set policies and secrets, pause topics, revive and purge
        /// jobs, read the audit log. `import`: export and import.
        scopes: Scopes [SCOPES], required Vec::new();
        /// The topics that it is for. If it is left out, all of the tenant.
        topics: Topics [TOPICS], or Vec::new();
        /// The hosts that jobs and policies may name, by https alone. If it is left out, all that the installation allows.
        destinations: Hosts [DESTINATIONS], or Vec::new();
        /// The networks that it may be used from. If it is left out, all.
        cidrs: Networks [NETWORKS], or Vec::new();
        /// When it expires. If it is left out, never.
        expires: Time;
    }
}

/// Scopes, each once.
pub struct Scopes;
/// Topics without a tenant, each once.
pub struct Topics;
/// Hosts as the origins of callbacks have them, each once.
pub struct Hosts;
/// Networks, each once. Whether a text is one is not known here.
pub struct Networks;

kinds! {
    Scopes: Vec<Scope> = valid(|raw| distinct(raw, |name| name.parse().ok())),
        as list::<Scope>().min_items(Some(1)), of Scope;
    Topics: Vec<Topic> = valid(|raw| distinct(raw, |text| text.parse().ok())), as some::<TopicName>(), of TopicName;
    Hosts: Vec<String> = valid(|raw| {
        distinct(raw, |text| is_host(&text).then(|| without_root(&text).to_owned()))
    }), as some::<HostName>(), of HostName;
    Networks: Vec<String> = valid(|raw| distinct(raw, Some)), as some::<Network>(), of Network;
}

/// Parses the request to make a key. `is_network` says whether a text is a network.
///
/// # Errors
/// A 400 problem if it is not a JSON object, 413 if it is too long, 422 with all wrong fields.
pub fn parse_new_key(
    json: &[u8],
    now: Timestamp,
    is_network: impl Fn(&str) -> bool,
) -> Result<Grant, Problem> {
    let (fields, mut mistakes) = (open(json)?, Mistakes::default());
    let NewKeyRequest { tenant, scopes, topics, destinations, cidrs, expires } =
        NewKeyRequest::read(&fields, &mut mistakes);
    if let Some(raw) = fields.get("cidrs").filter(|_| !cidrs.iter().all(|text| is_network(text))) {
        mistakes.add("cidrs", format_args!("{} is not valid", shown(raw)), NETWORKS);
    }
    if expires.is_some_and(|expires| expires <= now) {
        mistakes.add(
            "expires",
            "it has passed",
            "a time in the future; omit it for a key that does not expire",
        );
    }
    let topics = topics.into_iter().map(|topic| topic.of_tenant(tenant.as_ref())).collect();
    mistakes.or(Grant { tenant, scopes, topics, destinations, networks: cidrs, expires })
}

/// The schema of a list of 1 to 32 different texts.
fn some<T: ToSchema>() -> ArrayBuilder {
    list::<T>().min_items(Some(1)).max_items(Some(MAX_ENTRIES)).unique_items(true)
}

/// Parses a list of 1 to 32 texts. `None` if it is something else, one cannot be parsed, or two entries are equal.
fn distinct<T: PartialEq>(raw: &RawValue, parse: impl Fn(String) -> Option<T>) -> Option<Vec<T>> {
    let texts = read::<Vec<String>>(raw).filter(|texts| (1..=MAX_ENTRIES).contains(&texts.len()))?;
    let entries = texts.into_iter().map(parse).collect::<Option<Vec<_>>>()?;
    let is_new = |(at, entry): (usize, &T)| !entries[..at].contains(entry);
    entries.iter().enumerate().all(is_new).then_some(entries)
}

fn is_host(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    let is_name = (1..=253).contains(&text.len()) && text.bytes().all(is_allowed);
    // As a URL has it, so that it can be compared.
    is_name || text.parse::<Ipv6Addr>().is_ok_and(|address| address.to_string() == text)
}

/// The names of scopes.
fn names(scopes: &[Scope]) -> Vec<String> {
    scopes.iter().map(|scope| scope.to_string()).collect()
}

fn topic_names(topics: &[Topic]) -> Vec<String> {
    topics.iter().map(|topic| topic.name().to_owned()).collect()
}

/// A key, without the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyDetails {
    /// Its id.
    #[schema(example = "key_01KAR8Z6V5Q0M5W8C1T3N9X2YB")]
    pub id: String,
    /// The tenant whose topics and jobs it is for; null for those without a tenant.
    pub tenant: Option<String>,
    /// What it allows: `submit`, `consume`, `read`, `manage`, `import`.
    pub scopes: Vec<String>,
    /// The topics that it is for; empty for all of the tenant.
    pub topics: Vec<String>,
    /// The hosts that jobs may go to, by https; empty for all that the installation allows.
    pub destinations: Vec<String>,
    /// The networks that it may be used from; empty for all.
    pub cidrs: Vec<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it expires; null if it does not.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// When it was last used, to the hour; null if it never was.
    #[schema(format = DateTime)]
    pub last_used_at: Option<String>,
}

impl From<&AccessKey> for KeyDetails {
    fn from(key: &AccessKey) -> Self {
        let AccessKey { id, grant, created, last_used, .. } = key;
        Self {
            id: id.to_string(),
            tenant: grant.tenant.as_ref().map(ToString::to_string),
            scopes: names(&grant.scopes),
            topics: topic_names(&grant.topics),
            destinations: grant.destinations.clone(),
            cidrs: grant.networks.clone(),
            created_at: created.to_string(),
            expires_at: grant.expires.map(|at| at.to_string()),
            last_used_at: last_used.map(|at| at.to_string()),
        }
    }
}

/// A key that was made. The key itself is shown only here.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreatedKey {
    /// The key, for the caller.
    #[schema(example = "rbk_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmFyMTIz")]
    pub key: String,
    /// What it allows.
    #[serde(flatten)]
    pub about: KeyDetails,
}

/// All keys, the newest one first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeysResponse {
    /// The keys.
    pub items: Vec<KeyDetails>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);
    const WHOLE: &str = r#"{"tenant":"acme","scopes":["submit","read"],"topics":["a","b"],"destinations":["hooks.example.com"],"cidrs":["10.0.0.0/8"],"expires":"2030-01-01T00:00:00Z"}"#;

    fn parse(json: &str) -> Result<Grant, Vec<String>> {
        let parsed = parse_new_key(json.as_bytes(), NOW, |text| text.contains('/'));
        parsed.map_err(|problem| problem.errors.into_iter().map(|error| error.field).collect())
    }

    #[test]
    fn a_key_names_scopes_and_may_be_limited() {
        assert!(parse(r#"{"scopes":["read"],"destinations":["2001:db8::1"]}"#).is_ok());
        let root = parse(r#"{"scopes":["read"],"destinations":["hooks.example.com."]}"#).unwrap();
        assert_eq!(root.destinations, ["hooks.example.com"], "as the origins of callbacks have it");
        let grant = parse(WHOLE).unwrap();
        assert_eq!(grant.tenant.as_ref().map(Tenant::as_str), Some("acme"));
        assert!(grant.allows(Scope::Submit) && grant.allows(Scope::Read) && !grant.allows(Scope::Manage));
        assert_eq!(grant.topics.iter().map(Topic::as_str).collect::<Vec<_>>(), ["~acme/a", "~acme/b"]);
        assert_eq!(
            parse(r#"{"scopes":["read"]}"#).unwrap(),
            Grant { scopes: vec![Scope::Read], ..Grant::default() }
        );
    }

    #[test]
    fn all_wrong_fields_are_named() {
        let wrong = r#"{"tenant":"a/b","scopes":["root"],"topics":["a","a"],"destinations":["A"],"cidrs":["x"],"expires":"2001-01-01T00:00:00Z","more":1}"#;
        let mut fields = parse(wrong).unwrap_err();
        fields.sort();
        assert_eq!(fields, ["cidrs", "destinations", "expires", "more", "scopes", "tenant", "topics"]);
        for (json, field) in [
            ("{}", "scopes"),
            (r#"{"scopes":[]}"#, "scopes"),
            (r#"{"scopes":["read","read"]}"#, "scopes"),
            (r#"{"scopes":["read"],"topics":[]}"#, "topics"),
            (r#"{"scopes":["read"],"destinations":["https://a"]}"#, "destinations"),
            (r#"{"scopes":["read"],"destinations":["2001:DB8::1"]}"#, "destinations"),
        ] {
            assert_eq!(parse(json).unwrap_err(), [field], "{json}");
        }
    }
}
