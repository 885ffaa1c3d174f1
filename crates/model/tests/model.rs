//! Searches of the models. Without a fault every property holds; each planted fault breaks the property named here.

use ringback_model::models::{
    BATCHES, CLOCK, EVERYTHING, FAIL_OVER, LEASES, LOST_SETTLE, PAUSES, SKEWED, SMALL, THREE_JOBS,
};
use ringback_model::{Bounds, Planted, Property, Report, Situation, search};
use ringback_testkit::figures::{Figure, Reached};

/// How many states of a model are visited at most, unless `RINGBACK_MODEL_STATES` says more for the largest ones.
const STATES: usize = 1_000_000;

/// Searches a model in which every property must hold.
#[expect(clippy::print_stdout, reason = "the size of each search is shown")]
fn hold(bounds: Bounds, limit: usize, threads: usize) -> Report {
    let report = search(bounds, limit, threads);
    println!("{report}");
    assert!(report.violated.is_empty(), "{report}");
    report
}

/// Searches a model, which has to meet these situations.
fn hold_and_meet(bounds: Bounds, situations: &[Situation]) -> Report {
    let report = hold(bounds, STATES, 1);
    let missing: Vec<_> = situations.iter().filter(|situation| !report.met.contains(situation)).collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
    report
}

#[test]
fn pauses_do_no_harm_however_long() {
    use Situation::{CancelRequested, DiedByLoss, Fenced, LateSuccess, StaleFailure, StaleSuccess};
    let situations = [CancelRequested, DiedByLoss, Fenced, LateSuccess, StaleFailure, StaleSuccess];
    let report = hold_and_meet(PAUSES, &situations);
    assert!(report.is_complete, "{report}");
}

#[test]
fn small_models_are_safe_to_their_end() {
    for bounds in SMALL {
        let report = hold(bounds, 2 * STATES, 1);
        assert!(report.is_complete, "{report}");
    }
}

#[test]
fn leases_are_safe_from_lost_replies_late_calls_and_crashes() {
    use Situation::{
        CancelRequested, DiedByLoss, LateCall, LateSuccess, SettleReplayed, Settled, StaleFailure,
        StaleSuccess,
    };
    let situations = [
        CancelRequested,
        DiedByLoss,
        LateCall,
        LateSuccess,
        SettleReplayed,
        Settled,
        StaleFailure,
        StaleSuccess,
    ];
    hold_and_meet(LEASES, &situations);
}

#[test]
fn jobs_that_share_a_batch_of_leases_do_not_disturb_each_other() {
    hold_and_meet(BATCHES, &[Situation::Settled, Situation::SettleReplayed, Situation::LateSuccess]);
}

#[test]
fn a_fail_over_loses_only_the_last_writes_and_no_number_repeats() {
    use Situation::{AcceptedLost, EpochLost, Fenced, LeaseNumberLost};
    hold_and_meet(FAIL_OVER, &[AcceptedLost, EpochLost, Fenced, LeaseNumberLost]);
    // A caller knows of no other job of its batch, and the store still does.
    hold(LOST_SETTLE, STATES, 1);
}

#[test]
fn a_clock_that_steps_back_does_no_harm() {
    hold_and_meet(CLOCK, &[Situation::Fenced, Situation::LateCall, Situation::LateSuccess]);
}

#[test]
fn all_faults_together_break_nothing() {
    #[expect(clippy::disallowed_methods, reason = "a variable of the tests, which are not a service")]
    let wanted = std::env::var("RINGBACK_MODEL_STATES").ok();
    let wanted = wanted.map(|states| states.parse().expect("RINGBACK_MODEL_STATES is a number"));
    let limit = wanted.unwrap_or(STATES);
    let report = hold(EVERYTHING, limit, 2);
    assert!(report.is_complete || report.visited >= limit, "{report}");
    let wrong = report.violated.len() as u64;
    Reached::new(Figure::ModelStates, "all faults", report.visited as u64).wrong(wrong).write();
    if wanted.is_some() {
        hold(THREE_JOBS, limit, 2);
    }
}

/// Numbers depend on the clock where a fail-over has lost the counter. A replica whose clock is behind gives a number
/// a second time; the search shows it, so that the assumption is no more than what is needed.
#[test]
fn numbers_repeat_only_where_a_replica_has_a_clock_that_is_behind() {
    let report = search(SKEWED, STATES, 1);
    println!("{report}");
    assert!(report.violates(Property::NumbersGrow), "{report}");
}

/// Each planted fault, a model in which it shows, and the property that it breaks.
const FINDS: [(Planted, Bounds, Property); 25] = [
    (Planted::FenceUnchecked, CLOCK, Property::Fence),
    (Planted::EpochWithoutClock, FAIL_OVER, Property::NumbersGrow),
    (Planted::EpochWithoutCounter, CLOCK, Property::NumbersGrow),
    (Planted::LeaseWithoutClock, FAIL_OVER, Property::NumbersGrow),
    (Planted::AttemptAsReceipt, FAIL_OVER, Property::NumbersGrow),
    (Planted::PromoteInTwoSteps, LEASES, Property::OneState),
    (Planted::RecoverEarly, LEASES, Property::OneLiveLease),
    (Planted::RecoverSkipsRequests, LEASES, Property::Drains),
    (Planted::RunOutIsFailure, LEASES, Property::Counters),
    (Planted::LossesUncounted, LEASES, Property::Counters),
    (Planted::ReserveForgetsCaller, BATCHES, Property::OneGrantPerCall),
    (Planted::EntriesUnchecked, LEASES, Property::AllowedEdges),
    (Planted::SettleUnchecked, LEASES, Property::StaleSettles),
    (Planted::StaleFailureCounts, LEASES, Property::StaleSettles),
    (Planted::LossForgotten, LEASES, Property::Cancel),
    (Planted::RequestForgotten, LEASES, Property::Cancel),
    (Planted::BatchDropped, BATCHES, Property::OneState),
    (Planted::CallerTrusted, LOST_SETTLE, Property::OneState),
    (Planted::RenewUnchecked, LEASES, Property::StaleSettles),
    (Planted::CancelIgnoresLease, LEASES, Property::AllowedEdges),
    (Planted::TombstonesIgnored, LEASES, Property::AllowedEdges),
    (Planted::LedgerOutside, LEASES, Property::Ledger),
    (Planted::OutboxOutside, LEASES, Property::OutboxComplete),
    (Planted::AcknowledgeFirst, LEASES, Property::OutboxComplete),
    (Planted::NoticesForAll, BATCHES, Property::NoticesTrue),
];

#[test]
fn each_planted_fault_is_found_by_the_property_that_it_breaks() {
    assert!(Planted::ALL.iter().all(|planted| FINDS.iter().any(|(found, ..)| found == planted)));
    let mut missed = Vec::new();
    for (planted, bounds, property) in FINDS {
        let report = search(bounds.with(planted), STATES, 1);
        let found: Vec<_> =
            report.violated.iter().map(|(name, steps)| format!("{name}, in {} steps", steps.len())).collect();
        println!("{planted:?}: {} ({} states of {})", found.join("; "), report.found, bounds.name);
        if !report.violates(property) {
            missed.push(format!("{planted:?} breaks {found:?}, not {property:?}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
