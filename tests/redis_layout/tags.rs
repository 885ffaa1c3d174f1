//! The index of jobs by tags in Redis: it has exactly the jobs with tags, a page reads only those, and damage to it is
//! found and repaired.

use std::collections::{BTreeMap, BTreeSet};

use redis::aio::MultiplexedConnection;
use redis::cmd;
use ringback_core::job::{Job, TenantScope};
use ringback_core::store_types::{DamageKind, Filter, Repair, StoreError};

use crate::contract::job_builders::{LONG, With};
use crate::contract::list_tagged::tagged;
use crate::contract::workbench::Workbench;
use crate::redis_layout::keys::{ask, bench, key, run};

/// The places of the flags and of the id's length in a record.
const FLAGS: usize = 12;
const ID: usize = 33;
const TOKEN: u8 = 4;
const TAGGED: u8 = 64;
/// The hexadecimal digits before the locator in a member.
const PREFIX: usize = 12;

/// Checks that the index of a shard has each tag of each of its jobs and nothing else.
pub(super) async fn index(redis: &mut MultiplexedConnection, base: &str, pool: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut expected = BTreeSet::new();
    for (locator, raw) in pool {
        let lane: Option<Vec<u8>> = cmd("HGET")
            .arg(format!("{base}:shard"))
            .arg(&raw[25..33])
            .query_async(redis)
            .await
            .expect("HGET");
        let name = lane.expect("the row of a lane").split_off(28);
        let name = String::from_utf8(name).expect("a lane's name");
        let tenant =
            name.strip_prefix('~').and_then(|rest| rest.split(['/', ' ']).next()).unwrap_or_default();
        for tag in tags_in(raw) {
            expected.insert(member(redis, tenant, &tag, locator).await);
        }
    }
    let found: BTreeSet<Vec<u8>> =
        cmd("ZRANGE").arg(format!("{base}:tags")).arg(&[0, -1]).query_async(redis).await.expect("ZRANGE");
    assert_eq!(found, expected, "the index of tags of {base}");
}

fn tags_in(raw: &[u8]) -> Vec<String> {
    if raw[FLAGS] & TAGGED == 0 {
        return Vec::new();
    }
    let token = if raw[FLAGS] & TOKEN != 0 { 8 } else { 0 };
    let (length, rest) = raw[ID + 1 + usize::from(raw[ID]) + token..].split_first_chunk().expect("tags");
    let tags = &rest[..u16::from_be_bytes(*length).into()];
    std::str::from_utf8(tags).expect("tags").split(' ').map(str::to_owned).collect()
}

async fn member(redis: &mut MultiplexedConnection, tenant: &str, tag: &str, locator: &[u8]) -> Vec<u8> {
    let text = format!("~{tenant} {tag}");
    let digest: String = cmd("EVAL")
        .arg("return redis.sha1hex(ARGV[1])")
        .arg(0)
        .arg(text)
        .query_async(redis)
        .await
        .expect("EVAL");
    [&digest.as_bytes()[..PREFIX], locator].concat()
}

/// The jobs of all pages of a filter, read with the limit `look`, and how many jobs were examined.
async fn pages(bench: &Workbench, filter: &Filter, look: usize) -> (Vec<Job>, usize) {
    let (mut jobs, mut examined, mut from) = (Vec::new(), 0, None);
    loop {
        let page = bench.store().page(filter, from, look).await.expect("a page");
        jobs.extend(page.items);
        examined += page.examined;
        from = page.next;
        if from.is_none() {
            return (jobs, examined);
        }
    }
}

/// A bench with three jobs that have a tag of their own among 203, an ended job that had the tag, and the ids of the
/// three.
async fn three_of_many() -> (Workbench, MultiplexedConnection, BTreeSet<String>) {
    let (bench, redis) = bench().await;
    for n in 0..200 {
        let job = bench.job(&format!("job-{n}")).after(LONG);
        bench.accept(job.tags(if n % 2 == 0 { "customer:42 order:7" } else { "" })).await;
    }
    let mut ids = BTreeSet::new();
    for n in 0..3 {
        let job = bench.job(&format!("mine-{n}")).tags("mine other").after(LONG);
        ids.insert(bench.accept(job).await.key.id.to_string());
    }
    let job = bench.accept(bench.job("ended").tags("mine").after(LONG)).await;
    bench.cancel(&job.key).await;
    (bench, redis, ids)
}

fn ids(jobs: &[Job]) -> BTreeSet<String> {
    jobs.iter().map(|job| job.key.id.to_string()).collect()
}

#[tokio::test]
async fn a_page_of_a_tag_looks_at_the_jobs_with_the_tag_alone() {
    let (bench, _, mine) = three_of_many().await;
    for look in [1, 2, 3, 500] {
        let (jobs, examined) = pages(&bench, &tagged("mine"), look).await;
        assert_eq!((jobs.len(), ids(&jobs), examined), (3, mine.clone(), 3), "{look} at a time");
    }
    assert_eq!(pages(&bench, &tagged("min"), 10).await.1, 0);
    let (jobs, examined) = pages(&bench, &tagged("customer:42"), 7).await;
    assert_eq!((jobs.len(), examined), (100, 100));
    let everybody = Filter { scope: TenantScope::All, ..tagged("mine") };
    assert_eq!(ids(&pages(&bench, &everybody, 50).await.0), mine, "by a scan");
}

#[tokio::test]
async fn a_cursor_of_the_index_is_refused_where_the_filter_names_no_tag() {
    let (bench, _, _) = three_of_many().await;
    let page = bench.store().page(&tagged("mine"), None, 1).await.expect("a page");
    let all = Filter { tag: None, ..tagged("mine") };
    let refused = bench.store().page(&all, page.next, 1).await;
    assert!(matches!(refused, Err(StoreError::Outdated)), "{refused:?}");
}

#[tokio::test]
async fn members_that_are_missing_or_lead_nowhere_are_found_and_repaired() {
    let (bench, mut redis, mine) = three_of_many().await;
    let index = key(&mut redis, "tags").await;
    let all: Vec<Vec<u8>> = ask(&mut redis, &[b"ZRANGE", index.as_bytes(), b"0", b"-1"]).await;
    run(&mut redis, &[b"DEL", index.as_bytes()]).await;
    let store = bench.store();
    let found = store.check(Repair::No).await.expect("check");
    assert_eq!(found.found, BTreeMap::from([(DamageKind::Tag, 103)]), "{found:#?}");
    assert!(!found.is_clean());
    let repaired = store.check(Repair::Yes).await.expect("check");
    assert!(repaired.is_clean() && repaired.repaired == 103, "{repaired:#?}");
    let again: Vec<Vec<u8>> = ask(&mut redis, &[b"ZRANGE", index.as_bytes(), b"0", b"-1"]).await;
    assert_eq!(again, all);

    // An entry of no job, and an entry of a job without the tag.
    let other = [&b"0123456789ab"[..], &all[0][PREFIX..]].concat();
    for stray in [b"0123456789abnobody's job".as_slice(), &other] {
        run(&mut redis, &[b"ZADD", index.as_bytes(), b"0", stray]).await;
    }
    let found = store.check(Repair::No).await.expect("check");
    assert_eq!((found.total(), found.stale), (0, 2), "{found:#?}");
    assert_eq!(ids(&pages(&bench, &tagged("mine"), 2).await.0), mine);
    let repaired = store.check(Repair::Yes).await.expect("check");
    assert_eq!((repaired.total(), repaired.stale), (0, 0), "{repaired:#?}");
    let again: Vec<Vec<u8>> = ask(&mut redis, &[b"ZRANGE", index.as_bytes(), b"0", b"-1"]).await;
    assert_eq!(again, all);
}
