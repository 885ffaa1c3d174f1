//! The words of the command line: `bench [--quick] [--shards=N] [--profile=always|everysec] [--growth=N] [scenario …]`.

use super::SCENARIOS;
use super::setup::{Profile, Setup, Size};

/// The most pending jobs of `growth` without a word: more takes longer than all else together.
const GROWTH: usize = 1_000_000;

/// What was asked for: how, and which scenarios, all without a name.
///
/// # Errors
/// What is wrong with a word, for whoever typed it.
pub fn parse(words: impl Iterator<Item = String>) -> Result<(Setup, Vec<&'static str>), String> {
    let mut setup = Setup {
        size: Size::Full,
        shards: None,
        profiles: vec![Profile::Always, Profile::EverySec],
        growth: GROWTH,
    };
    let mut names = Vec::new();
    for word in words {
        match word.split_once('=').unwrap_or((&word, "")) {
            ("--quick", "") => setup.size = Size::Quick,
            ("--shards", number) => setup.shards = Some(number_of(&word, number)?),
            ("--growth", number) => setup.growth = number_of(&word, number)?,
            ("--profile", "always") => setup.profiles = vec![Profile::Always],
            ("--profile", "everysec") => setup.profiles = vec![Profile::EverySec],
            (name, "") => names.push(scenario(name)?),
            _ => return Err(unknown(&word)),
        }
    }
    if names.is_empty() {
        names = SCENARIOS.iter().map(|(name, _)| *name).collect();
    }
    Ok((setup, names))
}

fn number_of<T: std::str::FromStr>(word: &str, number: &str) -> Result<T, String> {
    number.parse().map_err(|_| format!("{word}: a number is wanted"))
}

fn scenario(name: &str) -> Result<&'static str, String> {
    let found = SCENARIOS.iter().find(|(known, _)| *known == name);
    found.map(|(known, _)| *known).ok_or_else(|| unknown(name))
}

fn unknown(word: &str) -> String {
    let known = SCENARIOS.map(|(name, about)| format!("  {name:18} {about}")).join("\n");
    format!(
        "unknown: {word}\n\
         bench [--quick] [--shards=N] [--profile=always|everysec] [--growth=N] [scenario …]\n{known}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Setup, Vec<&'static str>), String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn without_a_word_everything_is_measured_with_both_profiles() {
        let (setup, names) = parsed("").expect("it is well formed");
        assert_eq!(setup.profiles, [Profile::Always, Profile::EverySec]);
        assert_eq!((setup.size, setup.shards, names.len()), (Size::Full, None, SCENARIOS.len()));
    }

    #[test]
    fn words_choose_the_size_the_profile_and_the_scenarios() {
        let (setup, names) = parsed("--quick drain --profile=everysec --shards=8 --growth=10000000 idle")
            .expect("it is well formed");
        assert_eq!((setup.size, setup.shards, setup.growth), (Size::Quick, Some(8), 10_000_000));
        assert_eq!((setup.profiles, names), (vec![Profile::EverySec], vec!["drain", "idle"]));
    }

    #[test]
    fn a_word_that_means_nothing_is_refused() {
        for line in ["drian", "--fast", "--profile=never", "--shards=many", "--quick=1"] {
            assert!(parsed(line).is_err(), "{line} was taken");
        }
    }
}
