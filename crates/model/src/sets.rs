//! Small sets: of jobs, and of times.

/// Jobs are numbered from 0.
pub type Job = usize;

/// The store's time, in ticks. In one tick fewer than `NUMBERS_PER_TICK` numbers are given out.
pub type Time = u8;

/// A lease number or an epoch.
pub(crate) type Number = u16;

/// How far the clock carries numbers in one tick: in the product numbers are microseconds.
pub(crate) const NUMBERS_PER_TICK: Number = 16;

/// A set of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobSet(u8);

impl JobSet {
    pub(crate) fn first(jobs: usize) -> Self {
        (0..jobs).collect()
    }

    pub(crate) fn contains(self, job: Job) -> bool {
        self.0 & (1 << job) != 0
    }

    pub(crate) fn insert(&mut self, job: Job) {
        self.0 |= 1 << job;
    }

    pub(crate) fn remove(&mut self, job: Job) {
        self.0 &= !(1 << job);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn is_subset_of(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Job> {
        (0..8).filter(move |job| self.contains(*job))
    }

    /// All sets of one and more of these jobs, with at most so many.
    pub(crate) fn subsets(self, most: usize) -> impl Iterator<Item = Self> {
        (1..=self.0).map(Self).filter(move |set| set.is_subset_of(self) && set.len() <= most)
    }
}

impl FromIterator<Job> for JobSet {
    fn from_iter<T: IntoIterator<Item = Job>>(jobs: T) -> Self {
        let mut set = Self::default();
        jobs.into_iter().for_each(|job| set.insert(job));
        set
    }
}

/// A set of times below 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TimeSet(u32);

impl TimeSet {
    pub(crate) fn contains(self, at: Time) -> bool {
        self.0 & (1 << at) != 0
    }

    pub(crate) fn insert(&mut self, at: Time) {
        self.0 |= 1 << at;
    }

    pub(crate) fn remove(&mut self, at: Time) {
        self.0 &= !(1 << at);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> u8 {
        self.0.count_ones() as u8
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Takes the times up to one out of the set.
    pub(crate) fn take_until(&mut self, at: Time) -> Self {
        let until = (1u32 << (at + 1)) - 1;
        let taken = Self(self.0 & until);
        self.0 &= !until;
        taken
    }
}
