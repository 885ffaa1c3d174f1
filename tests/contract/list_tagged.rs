//! Cases of lists by a tag: pages read only jobs with the tag, as jobs come, change and end, and each tenant's apart.

use std::collections::BTreeSet;

use ringback_core::job::{IfExists, NewJob, TenantScope, Topic};
use ringback_core::store_types::{Filter, SubmitResult};

use super::job_builders::{LONG, With, bury};
use super::list_dead;
use super::workbench::Workbench;
use crate::prelude::*;

pub(crate) fn tagged(tag: &str) -> Filter {
    Filter { scope: TenantScope::One(None), tag: Some(tag.to_owned()), ..Filter::default() }
}

/// The ids of the jobs of all pages, read with the limit `look`, and how many jobs were examined.
async fn read(bench: &Workbench, filter: &Filter, look: usize) -> (BTreeSet<String>, usize) {
    let (found, examined) = list_dead::read(bench, filter, look, async |_| ()).await;
    (found.iter().map(|job| job.key.id.to_string()).collect(), examined)
}

/// Asserts that a filter finds and counts exactly these jobs, from each place where pages can begin, and reads no other.
async fn finds(bench: &Workbench, filter: &Filter, jobs: &[&NewJob]) {
    let ids: BTreeSet<_> = jobs.iter().map(|job| job.key.id.to_string()).collect();
    assert_eq!(read(bench, filter, 2).await, (ids, jobs.len()), "{filter:?}");
    // Reads a page from each place where pages can begin.
    let mut found = 0;
    for from in bench.store().page_starts(filter) {
        found += bench.store().page(filter, Some(from), 500).await.expect("a page").items.len();
    }
    assert_eq!(found, jobs.len(), "{filter:?}");
    let count = bench.store().indexed_jobs(filter).await.expect("a count");
    assert_eq!(count, Some(jobs.len() as u64), "{filter:?}");
}

pub(crate) async fn the_pages_of_a_tag_look_at_the_jobs_with_it_alone(bench: &Workbench) {
    let others: Vec<_> = (0..200)
        .map(|n| {
            bench.job(&format!("other-{n}")).tags(["", "customer:42", "mines order:7"][n % 3]).after(LONG)
        })
        .collect();
    bench.submit(&others).await;
    let mine: Vec<_> =
        (0..20).map(|n| bench.job(&format!("mine-{n}")).tags("mine order:7").after(LONG)).collect();
    bench.submit(&mine).await;
    let mine: Vec<_> = mine.iter().collect();
    finds(bench, &tagged("mine"), &mine).await;
    for look in [1, 7, 500] {
        let (found, examined) = read(bench, &tagged("mine"), look).await;
        assert_eq!((found.len(), examined), (20, 20), "{look} at a time");
        let kept = bench.store().page_stored(&tagged("mine"), None, look).await.expect("a page");
        assert!(kept.items.iter().all(|kept| kept.job.tags.iter().any(|tag| tag == "mine")));
    }
    finds(bench, &tagged("nobody"), &[]).await;
    // Fewer jobs fit the filter than have the tag.
    let some = Filter { id_prefix: Some(mine[7].key.id.to_string()), ..tagged("mine") };
    assert_eq!(read(bench, &some, 7).await.1, 20);
    let everybody = Filter { scope: TenantScope::All, ..tagged("mine") };
    let (found, examined) = read(bench, &everybody, 50).await;
    assert_eq!(found, read(bench, &tagged("mine"), 50).await.0);
    assert!(examined >= 220, "a scan looks at all jobs: {examined}");
    assert_eq!(bench.store().indexed_jobs(&everybody).await.expect("a count"), None);
}

pub(crate) async fn the_index_of_tags_follows_jobs_as_they_change_and_end(bench: &Workbench) {
    let job = |name: &str| bench.job(name).tags("mine");
    let [stays, goes, done, dead, purged] = ["stays", "goes", "done", "dead", "purged"].map(job);
    bench.submit(&[stays.clone().after(LONG), goes.clone().after(LONG)]).await;
    finds(bench, &tagged("mine"), &[&stays, &goes]).await;
    bench.cancel(&goes.key).await;
    let lease = bench.reserved(done).await;
    bench.settle(lease, Outcome::Complete).await;
    for job in [&dead, &purged] {
        let lease = bench.reserved(job.clone()).await;
        bench.settle(lease, bury()).await;
    }
    finds(bench, &tagged("mine"), &[&stays, &dead, &purged]).await;
    bench.store().purge(&purged.key).await.expect("purge");
    finds(bench, &tagged("mine"), &[&stays, &dead]).await;
    let with_state = Filter { state: Some(State::Dead), ..tagged("mine") };
    assert_eq!(read(bench, &with_state, 2).await.0, BTreeSet::from([dead.key.id.to_string()]));
    for from in bench.store().page_starts(&with_state) {
        bench.store().page(&with_state, Some(from), 10).await.expect("each place is one of this filter");
    }
    // Replaces a pending and a dead job by jobs with other tags.
    for before in [&stays, &dead] {
        let token = bench.token();
        let other = before.clone().tags("other third").content(2).after(LONG);
        let replaced = bench.submit(&[NewJob { if_exists: IfExists::Replace { token }, ..other }]).await;
        assert!(matches!(replaced[0].answer, SubmitResult::Replaced | SubmitResult::Created), "{replaced:?}");
    }
    finds(bench, &tagged("mine"), &[]).await;
    finds(bench, &tagged("other"), &[&stays, &dead]).await;
    finds(bench, &tagged("third"), &[&stays, &dead]).await;
}

pub(crate) async fn a_tag_of_a_tenant_is_not_that_of_another(bench: &Workbench) {
    let [own, of_a, of_ab] =
        ["t", "~a/t", "~ab/t"].map(|topic| bench.job_of(topic, "job-").tags("mine").after(LONG));
    bench.submit(&[own.clone(), of_a.clone(), of_ab.clone()]).await;
    let of = |topic: &str| {
        let topic = Topic::from_stored(topic).expect("a topic");
        Filter { scope: TenantScope::One(topic.tenant()), ..tagged("mine") }
    };
    for (topic, job) in [("t", &own), ("~a/t", &of_a), ("~ab/t", &of_ab)] {
        finds(bench, &of(topic), &[job]).await;
    }
}
