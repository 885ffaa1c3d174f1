//! Stretches of time: sorted, and merged where they overlap.

/// A set of times.
#[derive(Debug, Default)]
pub(crate) struct Windows(Vec<(u64, u64)>);

impl Windows {
    /// The union of stretches, each given by its first and last time.
    pub(crate) fn new(stretches: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut stretches: Vec<_> = stretches.into_iter().collect();
        stretches.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (first, last) in stretches {
            match merged.last_mut() {
                Some((_, end)) if first <= *end => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a stretch has a time from `first` to `last`.
    pub(crate) fn overlap(&self, first: u64, last: u64) -> bool {
        self.0.get(self.0.partition_point(|(_, end)| *end < first)).is_some_and(|(start, _)| *start <= last)
    }

    /// The end of the stretch that contains a time; that time itself if none does.
    pub(crate) fn end_around(&self, time: u64) -> u64 {
        let next = self.0.get(self.0.partition_point(|(_, end)| *end < time));
        next.filter(|(start, _)| *start <= time).map_or(time, |(_, end)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_that_touch_are_one() {
        let windows = Windows::new([(50, 60), (10, 20), (15, 30), (30, 35)]);
        let overlaps = [(0, 9), (0, 10), (20, 20), (36, 49), (36, 50), (61, 99)];
        let found = overlaps.map(|(first, last)| windows.overlap(first, last));
        assert_eq!(found, [false, true, true, false, true, false]);
        assert_eq!([9, 10, 35, 36, 60].map(|time| windows.end_around(time)), [9, 35, 35, 36, 60]);
    }
}
