//! The table of all figures.

use strum::VariantArray as _;

use super::{Figure, Reached};

/// The table as text, and whether all figures are reached with nothing wrong. Slow recoveries are only shown, because
/// times depend on what else the machine does.
pub fn table(all: &[Reached]) -> (String, bool) {
    let (mut text, mut is_complete) = (format!("{:>10} {:>10} {:>6}\n", "reached", "wanted", "wrong"), true);
    for figure in Figure::VARIANTS {
        let of_figure: Vec<_> = all.iter().filter(|reached| reached.figure == *figure).collect();
        let count: u64 = of_figure.iter().map(|reached| reached.count).sum();
        let wrong: u64 = of_figure.iter().map(|reached| reached.wrong).sum();
        let wanted = of_figure.iter().filter_map(|reached| reached.of).max().unwrap_or(figure.wanted());
        let is_reached = count >= wanted && wrong == 0;
        is_complete &= is_reached;
        let mark = if is_reached { ' ' } else { '!' };
        text += &format!("{count:>10} {wanted:>10} {wrong:>6} {mark} {}\n", figure.meaning());
        for Reached { by, count, longest, .. } in of_figure {
            let took = longest.map_or_else(String::new, |(took, most)| {
                let late = if took > most { ", which is late" } else { "" };
                format!(", {took} ms of {most} at most{late}")
            });
            text += &format!("{:>32}{count} by {by}{took}\n", "");
        }
    }
    (text, is_complete)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn all() -> Vec<Reached> {
        Figure::VARIANTS.iter().map(|figure| Reached::new(*figure, "a test", figure.wanted())).collect()
    }

    #[test]
    fn figures_that_are_reached_are_complete() {
        let (text, is_complete) = table(&all());
        assert!(is_complete && !text.contains('!'), "{text}");
    }

    #[test]
    fn what_is_missing_or_wrong_is_marked_and_what_is_late_is_shown() {
        let late = (Duration::from_millis(2_001), Duration::from_secs(2));
        let changes: [fn(&mut Reached); 3] =
            [|one| one.count -= 1, |one| one.wrong = 1, |one| one.of = Some(one.count + 1)];
        for figure in Figure::VARIANTS {
            let place = all().iter().position(|one| one.figure == *figure).expect("it is there");
            for change in changes {
                let mut all = all();
                change(&mut all[place]);
                let (text, is_complete) = table(&all);
                assert!(!is_complete && text.matches('!').count() == 1, "{figure:?}: {text}");
            }
            let mut all = all();
            all[place] = all[place].clone().took(late.0, late.1);
            let (text, is_complete) = table(&all);
            assert!(
                is_complete && text.contains("2001 ms of 2000 at most, which is late"),
                "{figure:?}: {text}"
            );
        }
    }
}
