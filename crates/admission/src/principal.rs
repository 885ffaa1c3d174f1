//! [`Principal`]: who submits or calls (a tenant or none, by a key with scopes, the operator with the root key, or a
//! part of the installation), and which topics, hosts, quotas and lists that means.

use std::sync::Arc;

use http::StatusCode;
use ringback_core::access::{AccessKey, KeyId};
use ringback_core::clock::Timestamp;
use ringback_core::job::{Callback, Tenant, TenantScope, Topic};
use ringback_service::http_server::{Holder, Peer};
use ringback_store::SharedConfig;
use ringback_wire::{FieldError, Problem};

#[derive(Clone, Debug)]
pub struct Principal {
    /// The topics of its tenant, or those without one, which the names in its requests are.
    own: TenantScope,
    /// What calls without a topic are about.
    reach: TenantScope,
    rights: Rights,
}

#[derive(Clone, Debug)]
enum Rights {
    Operator,
    /// What a tenant may do, within its quota.
    Part,
    Key(Arc<AccessKey>),
}

impl Principal {
    /// The operator, for what it chose; with `All`, topics named have no tenant. Without a root key all are operators.
    pub fn operator(reach: TenantScope) -> Self {
        let own = match &reach {
            TenantScope::All => TenantScope::One(None),
            TenantScope::One(_) => reach.clone(),
        };
        Self { own, reach, rights: Rights::Operator }
    }

    /// The operator whose lists are those of all tenants. It names no topics.
    pub fn operator_of_all() -> Self {
        Self { own: TenantScope::All, reach: TenantScope::All, rights: Rights::Operator }
    }

    pub fn with_key(key: Arc<AccessKey>) -> Self {
        let own = TenantScope::One(key.grant.tenant.clone());
        Self { reach: own.clone(), own, rights: Rights::Key(key) }
    }

    /// A part of the installation that submits for a tenant: it has the tenant's quota, and no key. Without a tenant it
    /// is like the operator who has chosen what has none.
    pub fn of_tenant(tenant: Option<Tenant>) -> Self {
        let is_limited = tenant.is_some();
        let own = TenantScope::One(tenant);
        let rights = if is_limited { Rights::Part } else { Rights::Operator };
        Self { reach: own.clone(), own, rights }
    }

    /// Whether a long call of the caller may go on: its key is still there and valid, as far as the shared
    /// configuration knows. A caller without a key may always go on.
    pub fn may_go_on(&self, config: &SharedConfig, now: Timestamp) -> bool {
        let Some(key) = self.key() else { return true };
        let keys = config.keys().ok();
        keys.is_some_and(|keys| {
            keys.get(&key.hash).is_some_and(|known| known.id == key.id && known.is_valid_at(now))
        })
    }

    /// The time at which the caller's key expires. `None` if the key does not expire, or the caller has no key.
    pub fn expires(&self) -> Option<Timestamp> {
        self.key()?.grant.expires
    }

    /// Whether the caller may do everything.
    pub const fn is_operator(&self) -> bool {
        matches!(self.rights, Rights::Operator)
    }

    /// The tenant that the names of topics in requests belong to; `None` if they belong to none.
    pub const fn tenant(&self) -> Option<&Tenant> {
        match &self.own {
            TenantScope::One(tenant) => tenant.as_ref(),
            TenantScope::All => None,
        }
    }

    /// The tenant whose quota and share limit the caller. `None` for the operator, whatever tenant it has chosen, and
    /// for callers without a tenant.
    pub fn limited_tenant(&self) -> Option<&Tenant> {
        self.tenant().filter(|_| !self.is_operator())
    }

    /// The scope of calls that name no topic and count, stream or copy. For the operator this is that of all, unless a
    /// tenant was chosen.
    pub const fn reach(&self) -> &TenantScope {
        &self.reach
    }

    /// The scope of lists, which name topics without their tenant.
    pub const fn own(&self) -> &TenantScope {
        &self.own
    }

    /// Whether lists are those of all tenants, so that each item names its tenant.
    pub fn lists_all_tenants(&self) -> bool {
        self.own == TenantScope::All
    }

    /// The tenant of an item as lists show it; `None` unless they are those of all tenants.
    pub fn shown_tenant(&self, tenant: Option<&Tenant>) -> Option<String> {
        tenant.filter(|_| self.lists_all_tenants()).map(ToString::to_string)
    }

    /// The topics that the key of the caller is limited to; empty for no limit.
    pub fn topics(&self) -> &[Topic] {
        self.key().map_or(&[], |key| &key.grant.topics)
    }

    /// Whether a topic is within the reach of the caller, and its key is for the topic.
    pub fn reaches(&self, topic: &Topic) -> bool {
        self.reach.has(topic) && self.has_topic(topic)
    }

    /// Whether lists show a topic to the caller.
    pub fn owns(&self, topic: &Topic) -> bool {
        self.own.has(topic) && self.has_topic(topic)
    }

    /// The id of the caller's key; `None` for the root key and without a key.
    pub fn key_id(&self) -> Option<&KeyId> {
        self.key().map(|key| &key.id)
    }

    fn key(&self) -> Option<&AccessKey> {
        match &self.rights {
            Rights::Key(key) => Some(key),
            Rights::Operator | Rights::Part => None,
        }
    }

    fn has_topic(&self, topic: &Topic) -> bool {
        self.topics().is_empty() || self.topics().contains(topic)
    }

    /// The topic with this name of the caller's tenant.
    ///
    /// # Errors
    /// 403 if the key of the caller is for other topics.
    pub fn topic(&self, name: &Topic) -> Result<Topic, Problem> {
        let topic = name.of_tenant(self.tenant());
        self.check_topic(&topic).map(|()| topic)
    }

    /// Checks that the key of the caller is for a topic.
    ///
    /// # Errors
    /// 403 if it is not. The message does not name the topic, which may come from the store.
    pub fn check_topic(&self, topic: &Topic) -> Result<(), Problem> {
        if self.has_topic(topic) {
            return Ok(());
        }
        let names: Vec<_> = self.topics().iter().map(Topic::name).collect();
        let detail = format!("the key is not for this topic; it is for {}", names.join(", "));
        Err(Problem::new(StatusCode::FORBIDDEN, detail))
    }

    /// The holder of the permits that the caller takes: its tenant, or else the address that it calls from.
    pub fn holder(&self, peer: Peer) -> Holder {
        match self.tenant() {
            Some(tenant) => Holder::Name(tenant.as_str().into()),
            None => peer.into(),
        }
    }

    /// Whether the caller's permits are those of this holder.
    pub fn is_holder(&self, peer: Peer, holder: &Holder) -> bool {
        match (holder, self.tenant()) {
            (Holder::Name(name), Some(tenant)) => **name == *tenant.as_str(),
            (Holder::Peer(known), None) => *known == peer,
            (Holder::Name(_), None) | (Holder::Peer(_), Some(_)) => false,
        }
    }

    /// What is wrong with the URL of a job or a policy: the key of the caller is limited to destinations, and this is
    /// not https to one of them. `None` if nothing is wrong.
    pub fn judge(&self, field: &str, url: &Callback) -> Option<FieldError> {
        let destinations = &self.key()?.grant.destinations;
        if destinations.is_empty() || url.is_pull() {
            return None;
        }
        let host = url.origin().strip_prefix("https://").map(host_of);
        let is_allowed = host.is_some_and(|host| destinations.iter().any(|one| one == host));
        (!is_allowed).then(|| FieldError {
            field: field.to_owned(),
            detail: "the key is not for this destination".to_owned(),
            allowed: format!("https URLs of {}", destinations.join(", ")),
        })
    }
}

fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => authority.split(':').next().unwrap_or(authority),
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::access::{Grant, KeyId, Scope};

    use super::*;

    fn topic(name: &str) -> Topic {
        Topic::from_stored(name).unwrap()
    }

    fn with(grant: Grant) -> Principal {
        let grant = Grant { scopes: vec![Scope::Submit], ..grant };
        let (id, created) = (KeyId::of("1"), Timestamp::default());
        Principal::with_key(Arc::new(AccessKey { id, hash: [0; 32], grant, created, last_used: None }))
    }

    #[test]
    fn a_key_has_the_topics_of_its_tenant_and_the_operator_those_of_the_chosen_one() {
        let acme: Tenant = "acme".parse().unwrap();
        let key = with(Grant { tenant: Some(acme.clone()), ..Grant::default() });
        assert_eq!(key.topic(&topic("pay")).unwrap(), topic("~acme/pay"));
        assert!(
            key.owns(&topic("~acme/pay")) && !key.owns(&topic("pay")) && !key.reaches(&topic("~bcme/pay"))
        );
        let plain = with(Grant::default());
        assert!(plain.owns(&topic("pay")) && !plain.reaches(&topic("~acme/pay")));
        let operator = Principal::operator(TenantScope::All);
        assert!(operator.reaches(&topic("~acme/pay")) && !operator.owns(&topic("~acme/pay")));
        let chosen = Principal::operator(TenantScope::One(Some(acme)));
        assert!(!chosen.reaches(&topic("pay")) && chosen.owns(&topic("~acme/pay")));
        let none = Principal::operator(TenantScope::One(None));
        assert!(none.reaches(&topic("pay")) && !none.reaches(&topic("~acme/pay")));
        let all = Principal::operator_of_all();
        assert!(all.owns(&topic("pay")) && all.owns(&topic("~acme/pay")) && all.is_operator());
    }

    #[test]
    fn a_part_of_the_installation_has_the_quota_of_its_tenant_and_needs_no_key() {
        let acme: Tenant = "acme".parse().unwrap();
        let part = Principal::of_tenant(Some(acme.clone()));
        assert!(part.limited_tenant() == Some(&acme) && !part.is_operator());
        assert_eq!(part.topic(&topic("pay")).unwrap(), topic("~acme/pay"));
        assert!(!part.owns(&topic("pay")) && !part.reaches(&topic("~bcme/pay")));
        assert!(part.judge("url", &Callback::parse("http://any.example/").unwrap()).is_none());
        // An empty shared configuration knows no key.
        let (config, now) = (SharedConfig::default(), Timestamp::default());
        assert!(part.may_go_on(&config, now) && !with(Grant::default()).may_go_on(&config, now));
        let plain = Principal::of_tenant(None);
        assert!(plain.limited_tenant().is_none() && plain.is_operator() && plain.may_go_on(&config, now));
        assert!(plain.owns(&topic("pay")) && !plain.reaches(&topic("~acme/pay")));
    }

    #[test]
    fn a_key_for_some_topics_has_no_others() {
        let key = with(Grant { topics: vec![topic("pay")], ..Grant::default() });
        assert!(key.topic(&topic("pay")).is_ok() && !key.owns(&topic("refund")));
        let refused = key.topic(&topic("refund")).unwrap_err();
        assert!(refused.status == 403 && refused.detail.contains("it is for pay"), "{refused:?}");
    }

    #[test]
    fn a_key_for_some_hosts_has_no_others_and_only_https() {
        let key = with(Grant {
            destinations: vec!["hooks.example.com".to_owned(), "2001:db8::1".to_owned()],
            ..Grant::default()
        });
        let is_allowed = |url: &str| key.judge("url", &Callback::parse(url).unwrap()).is_none();
        for allowed in
            ["https://hooks.example.com/a", "https://hooks.example.com:8443/", "https://[2001:db8::1]:8443/"]
        {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in
            ["http://hooks.example.com/", "https://example.com/", "https://hooks.example.com.evil.example/"]
        {
            assert!(!is_allowed(refused), "{refused}");
        }
        assert!(key.judge("url", &Callback::pull()).is_none());
        let free = with(Grant::default());
        assert!(free.judge("url", &Callback::parse("http://any.example/").unwrap()).is_none());
    }
}
