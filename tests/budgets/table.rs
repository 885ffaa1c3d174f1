//! The table of measured values beside their bounds.

use std::fmt::Write as _;

/// The most that something may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// The name of the value, with its unit.
    pub(crate) what: &'static str,
    /// No more than this.
    pub(crate) most: f64,
}

/// The rows of one test.
#[derive(Default)]
pub(crate) struct Table(Vec<(Bound, f64)>);

impl Table {
    /// Adds a measured value beside its bound.
    pub(crate) fn row(&mut self, bound: Bound, measured: f64) {
        self.0.push((bound, measured));
    }

    /// Prints all rows.
    ///
    /// # Panics
    /// When a value is over its bound; the message names each such value.
    #[expect(clippy::print_stdout, reason = "the table is what `make guard` is for")]
    pub(crate) fn judge(self) {
        let mut text = format!("{:<72} {:>12} {:>12}\n", "what", "measured", "bound");
        for (Bound { what, most }, measured) in &self.0 {
            let over = if measured > most { "  OVER" } else { "" };
            let _ = writeln!(text, "{what:<72} {measured:>12.3} {most:>12.3}{over}");
        }
        println!("{text}");
        let over = self.0.iter().filter(|(bound, measured)| *measured > bound.most);
        let over: Vec<_> =
            over.map(|(b, measured)| format!("{}: {measured:.2} > {}", b.what, b.most)).collect();
        assert!(
            over.is_empty(),
            "dearer than tests/budgets/bounds.rs allows; find out why before a bound is raised: {over:#?}"
        );
    }
}
