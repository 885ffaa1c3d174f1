//! A master with sentinels and ACL users: the documented rights are enough to follow a fail-over.

use ringback_testkit::{Persistence, RedisSentinel, RedisServer, Sink, Stack};

use super::super::runs_all_topologies;
use super::works_again;

#[tokio::test]
async fn a_user_with_the_documented_rights_follows_a_fail_over() {
    if !runs_all_topologies() {
        return;
    }
    let servers = RedisServer::options().persistence(Persistence::Always);
    let servers = servers
        .arg("--user", "ringback")
        .arg("on", ">secret")
        .arg("~ringback:*", "&ringback:wake")
        .arg("&ringback:policies", "&ringback:events")
        .arg("+@read", "+@write")
        .arg("+@scripting", "+@pubsub")
        .arg("+@connection", "-@dangerous")
        .arg("+time", "+info")
        .arg("+config|get", "+bgrewriteaof");
    let mut set = RedisSentinel::start(servers).await;
    let url = set.url().replace("://", "://ringback:secret@");
    let options = Stack::options().store(&url).env("RINGBACK_DURABILITY", "replicated");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    works_again(&mut stack, &sink, "before").await;
    set.are_in_sync(0).await;
    set.server_mut(0).kill();
    set.another_master(0, 0).await;
    works_again(&mut stack, &sink, "after").await;
}
