//! Locks: their fencing tokens grow, and a stale holder has no effect (Fencing).

use std::collections::BTreeMap;

use crate::history::entry::FaultClass;
use crate::history::findings::Findings;
use crate::history::invariant::Invariant::Fencing;
use crate::history::parsed_lines::{FaultRecord, LockRecord, Tables};
use crate::history::windows::Windows;

pub(super) fn check(tables: &Tables, findings: &mut Findings) {
    // During a split, each server has locks of its own.
    let is_split = |fault: &&FaultRecord| fault.class == FaultClass::Split;
    let splits = tables.run.faults.iter().filter(is_split).map(|fault| (fault.begin, fault.end));
    let splits = Windows::new(splits);
    let mut locks = BTreeMap::<u32, Vec<&LockRecord>>::new();
    for used in &tables.run.locks {
        locks.entry(used.lock).or_default().push(used);
    }
    for (lock, uses) in locks {
        let lock = tables.texts.name(lock);
        let (mut claims, effects): (Vec<_>, Vec<_>) =
            uses.into_iter().filter(|used| !used.is_fenced).partition(|used| used.is_claim);
        claims.sort_unstable_by_key(|claim| (claim.known, claim.token));
        check_claims(lock, &claims, findings);
        for effect in effects.into_iter().filter(|effect| !splits.overlap(effect.asked, effect.asked)) {
            check_effect(lock, &claims, effect, &splits, findings);
        }
    }
}

fn check_claims(lock: &str, claims: &[&LockRecord], findings: &mut Findings) {
    for pair in claims.windows(2) {
        let (one, next) = (pair[0], pair[1]);
        findings.checked(Fencing);
        // Either of two claims at the same time may be the first.
        let is_order_certain = one.known < next.asked;
        if one.token == next.token || (one.token > next.token && is_order_certain) {
            let (from, to) = (one.token, next.token);
            let what = format_args!("{lock} was claimed with the token {to} after {from}");
            findings.violated(Fencing, None, &[one.line, next.line], what);
        }
    }
}

/// Checks that an effect has no older token than a claim known before it, and that its process owns the token. Ignores
/// claims made during a split.
fn check_effect(
    lock: &str,
    claims: &[&LockRecord],
    effect: &LockRecord,
    splits: &Windows,
    findings: &mut Findings,
) {
    findings.checked(Fencing);
    let known = claims.partition_point(|claim| claim.known < effect.asked);
    // Claims during a split may be lost with their server.
    let lasting = claims[..known].iter().filter(|claim| !splits.overlap(claim.asked, claim.asked));
    let newest = lasting.max_by_key(|claim| claim.token);
    if let Some(newest) = newest.filter(|newest| newest.token > effect.token) {
        let (token, newer) = (effect.token, newest.token);
        let what = format_args!("{lock} was used with the token {token} after {newer} had been claimed");
        findings.violated(Fencing, None, &[newest.line, effect.line], what);
    }
    let owner = claims.iter().find(|claim| claim.token == effect.token);
    if let Some(owner) = owner.filter(|owner| owner.pid != effect.pid) {
        let what = format_args!("{lock} was used by process {} with the token of {}", effect.pid, owner.pid);
        findings.violated(Fencing, None, &[owner.line, effect.line], what);
    }
}
