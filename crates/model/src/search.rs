//! The search over all states of a model, by Stateright, and its report.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stateright::{Checker, HasDiscoveries, Model, Property as Checked};

use crate::action::Action;
use crate::bounds::Bounds;
use crate::coverage::{Coverage, Situation};
use crate::property::Property;
use crate::state::State;

/// Found once enough states were visited, which ends the search.
const ENOUGH: &str = "enough states";

/// What the checker gets.
struct Shard {
    bounds: Bounds,
    coverage: Arc<Coverage>,
    visited: Arc<AtomicUsize>,
    limit: usize,
}

impl Shard {
    fn is_enough(&self) -> bool {
        self.visited.fetch_add(1, Ordering::Relaxed) >= self.limit
    }
}

impl Model for Shard {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(&self.bounds)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.violations.is_empty() {
            state.actions(&self.bounds, actions);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.after(action, &self.bounds, &self.coverage)?;
        next.normalise(&self.bounds);
        Some(next)
    }

    fn properties(&self) -> Vec<Checked<Self>> {
        macro_rules! always {
            ($($property:ident),*) => {
                vec![$(Checked::always(Property::$property.name(), |model: &Self, state: &State| {
                    state.holds(Property::$property, &model.bounds)
                }),)* Checked::sometimes(ENOUGH, |model: &Self, _: &State| model.is_enough())]
            };
        }
        always![
            NothingLost,
            OneState,
            AllowedEdges,
            Ledger,
            Counters,
            Fence,
            NumbersGrow,
            OneLiveLease,
            OneGrantPerCall,
            StaleSettles,
            Cancel,
            NoPostAfterDone,
            DoneMeansDelivered,
            OutboxComplete,
            NoticesTrue,
            Drains
        ]
    }
}

/// What a search has found.
#[derive(Debug)]
pub struct Report {
    /// The name of the model.
    pub name: &'static str,
    /// Distinct states that were found.
    pub found: usize,
    /// Those of them whose properties and next steps were looked at.
    pub visited: usize,
    /// Steps from the beginning to the state that is farthest away.
    pub depth: usize,
    /// Whether there are no other states.
    pub is_complete: bool,
    /// The names of the properties that do not hold, each with the steps that show it.
    pub violated: Vec<(&'static str, Vec<Action>)>,
    /// The situations that were met.
    pub met: Vec<Situation>,
}

/// How many states are visited nearest first, which shows the shortest way to a violation but keeps all states that are
/// found and not visited yet: more than a kilobyte for each state that is visited.
const NEAREST_FIRST: usize = 5_000_000;

/// Visits the states of a model until a property does not hold, none is left, or about `limit` of them were visited. Up
/// to five million states are visited nearest first, more of them depth first.
pub fn search(bounds: Bounds, limit: usize, threads: usize) -> Report {
    let (coverage, visited) = (Arc::new(Coverage::default()), Arc::new(AtomicUsize::new(0)));
    let shard = Shard { bounds, coverage: Arc::clone(&coverage), visited: Arc::clone(&visited), limit };
    let builder = shard.checker().threads(threads).finish_when(HasDiscoveries::Any);
    if limit <= NEAREST_FIRST {
        report(bounds.name, &builder.spawn_bfs().join(), &coverage, &visited)
    } else {
        report(bounds.name, &builder.spawn_dfs().join(), &coverage, &visited)
    }
}

fn report(
    name: &'static str,
    checker: &impl Checker<Shard>,
    coverage: &Coverage,
    visited: &AtomicUsize,
) -> Report {
    let discoveries = checker.discoveries();
    let is_complete = !discoveries.contains_key(ENOUGH);
    let found = discoveries.into_iter().filter(|(name, _)| *name != ENOUGH);
    let mut violated: Vec<_> = found.map(|(name, path)| (name, path.into_actions())).collect();
    violated.sort_by_key(|(name, _)| *name);
    Report {
        name,
        found: checker.unique_state_count(),
        visited: visited.load(Ordering::Relaxed).min(checker.unique_state_count()),
        depth: checker.max_depth(),
        is_complete: is_complete && violated.is_empty(),
        violated,
        met: coverage.met(),
    }
}

impl Report {
    /// Whether a property was found not to hold.
    #[must_use]
    pub fn violates(&self, property: Property) -> bool {
        self.violated.iter().any(|(name, _)| *name == property.name())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = if self.is_complete { ", which are all" } else { "" };
        write!(f, "{}: {} states visited{all}, {} found, ", self.name, self.visited, self.found)?;
        write!(f, "{} deep, {} properties", self.depth, Property::ALL.len())?;
        for (name, steps) in &self.violated {
            write!(f, "\n  does not hold: {name}")?;
            steps.iter().try_for_each(|step| write!(f, "\n    {step:?}"))?;
        }
        Ok(())
    }
}
