//! `InFlight`: counts callbacks in flight by the name of a lane, an origin or a tenant, and finds those with the least
//! room for a reserve. Pure.

use std::collections::HashMap;

/// Callbacks in flight.
#[derive(Default)]
pub(super) struct InFlight {
    by_name: HashMap<String, usize>,
    /// How many jobs of any one name the reserves in flight may bring.
    pub(super) requested: usize,
}

impl InFlight {
    /// How many names have a callback in flight.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn of(&self, name: &str) -> usize {
        self.by_name.get(name).copied().unwrap_or(0)
    }

    pub(super) fn enter(&mut self, name: &str) {
        match self.by_name.get_mut(name) {
            Some(in_flight) => *in_flight += 1,
            None => {
                self.by_name.insert(name.to_owned(), 1);
            }
        }
    }

    pub(super) fn leave(&mut self, name: &str) {
        match self.by_name.get_mut(name) {
            Some(in_flight) if *in_flight > 1 => *in_flight -= 1,
            Some(_) => drop(self.by_name.remove(name)),
            None => {}
        }
    }

    /// Returns the names that have at least `least` in flight, and how many.
    pub(super) fn with(&self, least: usize) -> impl Iterator<Item = (&String, usize)> {
        self.by_name.iter().map(|(name, in_flight)| (name, *in_flight)).filter(move |(_, n)| *n >= least)
    }

    /// Returns the limit of each name and the names whose limit is lower, the fullest ones first. `slots` gives, for
    /// a name and what it has in flight, the free slots that a reserve may use, and all free slots.
    ///
    /// If there are more such names than `most`, the common limit is lowered to the free slots of the fullest one
    /// that is not named, but to 1 at least, so that those with nothing in flight still progress. Only one that is
    /// full beside `most` others may exceed its limit, by one.
    pub(super) fn lower_limits(
        &self,
        mut limit: usize,
        most: usize,
        slots: impl Fn(&str, usize) -> (usize, usize),
    ) -> (usize, Vec<(String, usize)>) {
        let with_slots = |(name, in_flight): (_, &usize)| {
            let name: &String = name;
            let (usable, free) = slots(name, *in_flight);
            (usable, free, name)
        };
        let mut lower: Vec<_> =
            self.by_name.iter().map(with_slots).filter(|(usable, ..)| *usable < limit).collect();
        if lower.len() > most {
            lower.select_nth_unstable(most);
            let least = lower.drain(most..).map(|(_, free, _)| free).min();
            limit = limit.min(least.unwrap_or(limit)).max(1);
        }
        (limit, lower.into_iter().map(|(usable, _, name)| (name.clone(), usable)).collect())
    }
}
