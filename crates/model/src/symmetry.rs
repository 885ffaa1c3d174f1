//! One state for all that differ only in the names of their jobs or processes, or in what nobody can ask for again.
//!
//! Any renaming is sound; sorting by what is known of each finds the same one for most symmetric states.

use crate::bounds::{Bounds, MAX_JOBS};
use crate::sets::{Job, JobSet};
use crate::state::{Call, Server, State};

/// The new number of each job.
type Renaming = [Job; MAX_JOBS];

impl State {
    /// Chooses the names.
    pub(crate) fn normalise(&mut self, bounds: &Bounds) {
        for notifier in 0..bounds.notifiers {
            let is_late =
                matches!(self.late, Some(Call::Reserve(Some((caller, _)), _)) if caller == notifier);
            if !self.notifiers[notifier].is_unanswered && !is_late {
                self.forget_caller(notifier);
            }
        }
        let mut order: Renaming = std::array::from_fn(|job| job);
        order[..bounds.jobs].sort_by_key(|job| self.job_key(*job));
        if !order.is_sorted() {
            let mut names = Renaming::default();
            order.iter().enumerate().for_each(|(new, old)| names[*old] = new);
            self.rename_jobs(&names);
        }
        self.notifiers.iter_mut().for_each(|notifier| notifier.held.sort_unstable());
        self.carriers[..bounds.carriers].sort_unstable();
        self.sort_notifiers(bounds);
    }

    /// What distinguishes jobs.
    fn job_key(&self, job: Job) -> impl Ord + use<> {
        let Server { store, facts } = &self.server;
        let sets = [store.dead, store.outbox, self.notices, facts.died, facts.accepted];
        let world = [self.world.died, self.world.delivered, self.world.set_back];
        (
            self.clients[job],
            store.records[job],
            store.tombstones[job],
            (store.scheduled[job], store.queued[job]),
            (facts.attempts[job], facts.failures[job], facts.lost[job], facts.live[job], facts.done[job]),
            sets.map(|set| set.contains(job)),
            world.map(|set| set.contains(job)),
        )
    }

    fn rename_jobs(&mut self, names: &Renaming) {
        self.server.rename_jobs(names);
        if let Some(replica) = &mut self.replica {
            replica.server.rename_jobs(names);
        }
        match &mut self.late {
            Some(Call::Submit(job) | Call::Cancel(job) | Call::Settle(job, ..) | Call::Renew(job, _)) => {
                *job = names[*job];
            }
            Some(Call::Acknowledge(_, jobs) | Call::Reserve(_, jobs)) => rename(jobs, names),
            Some(Call::Claim | Call::Promote(_) | Call::Recover(_)) | None => {}
        }
        for carrier in &mut self.carriers {
            rename(&mut carrier.read, names);
            rename(&mut carrier.published, names);
            reorder(&mut carrier.popped, names);
        }
        for held in self.notifiers.iter_mut().flat_map(|notifier| &mut notifier.held) {
            held.job = names[held.job];
        }
        reorder(&mut self.clients, names);
        rename(&mut self.notices, names);
        let world = &mut self.world;
        for set in [&mut world.died, &mut world.delivered, &mut world.set_back] {
            rename(set, names);
        }
    }

    fn sort_notifiers(&mut self, bounds: &Bounds) {
        let key = |notifier: usize| {
            let Server { store, facts } = &self.server;
            (&self.notifiers[notifier], store.callers[notifier], facts.granted[notifier])
        };
        if bounds.notifiers < 2 || key(0) <= key(1) {
            return;
        }
        self.notifiers.swap(0, 1);
        let replica = self.replica.as_mut().map(|replica| &mut replica.server);
        for server in [&mut self.server].into_iter().chain(replica) {
            server.store.callers.swap(0, 1);
            server.facts.granted.swap(0, 1);
        }
        if let Some(Call::Reserve(Some((caller, _)), _)) = &mut self.late {
            *caller = 1 - *caller;
        }
    }
}

impl Server {
    fn rename_jobs(&mut self, names: &Renaming) {
        let Self { store, facts } = self;
        reorder(&mut store.records, names);
        reorder(&mut store.scheduled, names);
        reorder(&mut store.queued, names);
        reorder(&mut store.tombstones, names);
        reorder(&mut facts.attempts, names);
        reorder(&mut facts.failures, names);
        reorder(&mut facts.lost, names);
        reorder(&mut facts.done, names);
        reorder(&mut facts.live, names);
        let sets = [&mut store.dead, &mut store.outbox, &mut facts.accepted, &mut facts.died];
        for set in sets.into_iter().chain(store.batches.iter_mut().map(|batch| &mut batch.jobs)) {
            rename(set, names);
        }
    }
}

fn rename(jobs: &mut JobSet, names: &Renaming) {
    *jobs = jobs.iter().map(|job| names[job]).collect();
}

fn reorder<T: Copy>(values: &mut [T; MAX_JOBS], names: &Renaming) {
    let old = *values;
    old.into_iter().zip(names).for_each(|(value, new)| values[*new] = value);
}
