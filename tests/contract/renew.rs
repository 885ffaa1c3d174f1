//! Cases of `renew`: a lease holds longer, never shorter, unless it was settled or recovered.

use ringback_core::store_types::{Renewed, SettleResult};
use tokio::time::{Instant, sleep_until};

use super::job_builders::{BRIEF, LONG, With, ms, release};
use super::workbench::{Workbench, run_out};
use crate::prelude::*;

pub(crate) async fn a_renewed_lease_is_left_alone_past_its_first_deadline(bench: &Workbench) {
    let mut lease = bench.reserved(bench.job("a").timeout(BRIEF)).await;
    let first = lease.deadline();
    assert_eq!(bench.store().renew(&mut lease, LONG).await.expect("renew"), Renewed::Extended);
    assert!(lease.deadline() > first + LONG - BRIEF - ms(1));
    // The store gave the lease a little later than this side counts.
    sleep_until(Instant::now().max(first) + BRIEF).await;
    let pass = bench.recover(10).await;
    assert_eq!((pass.moved, pass.other), (0, 0));
    assert!(pass.next_lease.is_some_and(|next| next <= LONG + ms(1) && next > BRIEF), "{pass:?}");
    assert_eq!(bench.state(&lease.key).await, Some(State::Reserved));
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
}

pub(crate) async fn a_renewal_never_shortens_a_lease(bench: &Workbench) {
    let mut lease = bench.reserved(bench.job("a")).await;
    let (first, before) = (lease.deadline(), bench.recover(10).await.next_lease.expect("a lease"));
    assert_eq!(bench.store().renew(&mut lease, ms(1)).await.expect("renew"), Renewed::Extended);
    assert_eq!(lease.deadline(), first);
    let after = bench.recover(10).await.next_lease.expect("a lease");
    assert!(after > before / 2, "{before:?}, then {after:?}");
}

pub(crate) async fn a_lease_that_was_settled_or_recovered_is_not_renewed(bench: &Workbench) {
    let key = bench.accept(bench.job("a")).await.key;
    let [lease, mut same] = bench.take_twice(&key).await;
    bench.settle(lease, release(ms(0))).await;
    assert_eq!(bench.store().renew(&mut same, LONG).await.expect("renew"), Renewed::Stale);
    let lease = bench.take_one(&key).await;
    assert_eq!(bench.store().renew(&mut same, LONG).await.expect("renew"), Renewed::Stale);
    bench.settle(lease, Outcome::Complete).await;
    assert_eq!(bench.store().renew(&mut same, LONG).await.expect("renew"), Renewed::Stale);

    let mut stale = bench.stale_lease(bench.job("b")).await;
    assert_eq!(bench.store().renew(&mut stale, LONG).await.expect("renew"), Renewed::Stale);
    assert_eq!(bench.state(&stale.key).await, Some(State::Ready));
}

pub(crate) async fn a_lease_past_its_deadline_is_renewed_while_nobody_recovered_it(bench: &Workbench) {
    let mut lease = bench.reserved(bench.job("a").timeout(BRIEF)).await;
    run_out(&lease).await;
    assert_eq!(bench.store().renew(&mut lease, LONG).await.expect("renew"), Renewed::Extended);
    assert_eq!(bench.recover(10).await.moved, 0);
    assert_eq!(bench.settle(lease, Outcome::Complete).await, SettleResult::Applied);
}
