//! Tests of names: topics, tenants, ids, keys, and what follows from them.

use super::*;

#[test]
fn a_key_is_the_part_of_an_id_before_the_first_tilde() {
    let id = |text: &str| text.parse::<JobId>().unwrap();
    for (text, key) in [("order-7", "order-7"), ("order-7~paid~2", "order-7"), ("~7", "~7")] {
        assert_eq!(id(text).order_key(), key);
    }
    let key: OrderKey = "order-7".parse().unwrap();
    assert_eq!(key.id("paid"), Some(id("order-7~paid")));
    assert!(key.is_of(&id("order-7")) && key.is_of(&id("order-7~")) && !key.is_of(&id("order-78")));
    let longest = "k".repeat(101);
    assert!(longest.parse::<OrderKey>().unwrap().id(&"0".repeat(26)).is_some());
    for wrong in ["", "a~b", "a b", "..", &format!("{longest}k")] {
        assert_eq!(wrong.parse::<OrderKey>(), Err(NameError(OrderKey::ALLOWED)), "{wrong:?}");
    }
}

fn key(topic: &str, id: &str) -> JobKey {
    JobKey { topic: topic.parse().unwrap(), id: id.parse().unwrap() }
}

#[test]
fn names_outside_their_alphabet_are_refused() {
    for bad in ["", ".", "..", "a b", "a/b", "{a}", "a\n", "ä", "a:b", &"x".repeat(65)] {
        assert!(bad.parse::<Topic>().is_err(), "{bad:?} was taken as a topic");
    }
    for bad in ["", ".", "..", "a b", "a/b", "{a}", "a\0", "ä", "a%20b", &"x".repeat(129)] {
        assert!(bad.parse::<JobId>().is_err(), "{bad:?} was taken as an id");
    }
    key("pay.notify_2-x", "user~A:b@c+d=e,f-1.2");
}

#[test]
fn ids_that_agree_up_to_the_tilde_share_a_shard_but_not_a_locator() {
    let (a, b) = (key("t", "customer-7~1"), key("t", "customer-7~2"));
    assert_eq!(a.shard_hash(), b.shard_hash());
    assert_eq!(a.shard_hash(), key("t", "customer-7").shard_hash());
    assert_ne!(a.locator(), b.locator());
}

#[test]
fn topic_and_id_do_not_run_into_each_other() {
    assert_ne!(key("a", "b.c").locator(), key("a.b", "c").locator());
}

fn of(tenant: &str, topic: &str) -> Topic {
    topic.parse::<Topic>().unwrap().of_tenant(Some(&tenant.parse().unwrap()))
}

#[test]
fn a_topic_of_a_tenant_has_the_name_of_the_topic_and_a_text_of_its_own() {
    let (plain, own) = ("pay".parse::<Topic>().unwrap(), of("acme", "pay"));
    assert_eq!((own.as_str(), own.name(), own.to_string().as_str()), ("~acme/pay", "pay", "pay"));
    assert_eq!((own.tenant(), plain.tenant()), (Some("acme".parse().unwrap()), None));
    assert_eq!(own.of_tenant(None), plain);
    for topic in [&plain, &own] {
        assert_eq!(Topic::from_stored(topic.as_str()).as_ref(), Some(topic));
    }
    for bad in ["~acme/pay", "~acme", "acme/pay", "~/pay"] {
        assert!(bad.parse::<Topic>().is_err(), "{bad}");
    }
    for bad in ["~acme", "~acme/", "~/pay", "acme/pay", "~acme/a/b", "~a b/c", ""] {
        assert_eq!(Topic::from_stored(bad), None, "{bad}");
    }
}

#[test]
fn jobs_of_tenants_share_no_place() {
    let id: JobId = "b".parse().unwrap();
    let keys = ["acme", "bcme"].map(|tenant| JobKey { topic: of(tenant, "a"), id: id.clone() });
    assert_ne!(keys[0].locator(), keys[1].locator());
    assert_ne!(keys[0].locator(), key("a", "b").locator());
}

#[test]
fn the_topics_of_a_scope_lie_between_its_bounds_and_no_others_do() {
    let topics = ["-", "a", "z", "~a-/t", "~a/-", "~a/z", "~a0/t", "~b/t"]
        .map(|text| Topic::from_stored(text).unwrap());
    assert!(topics.is_sorted());
    let scopes = [TenantScope::All, TenantScope::One(None), TenantScope::One(Some("a".parse().unwrap()))];
    for (scope, count) in scopes.into_iter().zip([8, 3, 2]) {
        let (least, end) = scope.bounds();
        let inside = |topic: &Topic| {
            topic.as_str() >= least.as_str() && end.as_deref().is_none_or(|end| topic.as_str() < end)
        };
        assert!(topics.iter().all(|topic| inside(topic) == scope.has(topic)), "{scope:?}");
        assert_eq!(topics.iter().filter(|topic| scope.has(topic)).count(), count, "{scope:?}");
    }
}
