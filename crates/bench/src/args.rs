//! The command line: `bench [--quick] [--shards=N] [--profile=always|everysec] [--growth=N] [--attack=NAME] [scenario …]`.

use crate::attack::ATTACKS;
use crate::scenarios::{SCENARIOS, Scenario};
use crate::setup::{Profile, Setup, Size};

/// The default of `--growth`: more jobs take longer than all other scenarios together.
const GROWTH: usize = 1_000_000;

/// The settings and the scenarios to run; all of them when none is named.
///
/// # Errors
/// A message for the terminal when an argument is unknown or malformed.
pub fn parse(args: impl Iterator<Item = String>) -> Result<(Setup, Vec<&'static Scenario>), String> {
    let mut setup = Setup {
        size: Size::Full,
        shards: None,
        profiles: vec![Profile::Always, Profile::EverySec],
        growth: GROWTH,
        attack: None,
    };
    let mut scenarios = Vec::new();
    for arg in args {
        match arg.split_once('=').unwrap_or((&arg, "")) {
            ("--quick", "") => setup.size = Size::Quick,
            ("--shards", number) => setup.shards = Some(number_of(&arg, number)?),
            ("--growth", number) => setup.growth = number_of(&arg, number)?,
            ("--attack", name) => setup.attack = Some(attack_of(&arg, name)?),
            ("--profile", "always") => setup.profiles = vec![Profile::Always],
            ("--profile", "everysec") => setup.profiles = vec![Profile::EverySec],
            (name, "") => scenarios.push(scenario(name)?),
            _ => return Err(unknown(&arg)),
        }
    }
    if scenarios.is_empty() {
        scenarios = SCENARIOS.iter().collect();
    }
    Ok((setup, scenarios))
}

fn number_of<T: std::str::FromStr>(arg: &str, number: &str) -> Result<T, String> {
    number.parse().map_err(|_| format!("{arg}: not a number"))
}

fn attack_of(arg: &str, name: &str) -> Result<&'static str, String> {
    let names = || ATTACKS.iter().map(|attack| attack.name);
    let known = || format!("{arg}: not one of {}", names().collect::<Vec<_>>().join(", "));
    names().find(|known| *known == name).ok_or_else(known)
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    SCENARIOS.iter().find(|known| known.name == name).ok_or_else(|| unknown(name))
}

fn unknown(arg: &str) -> String {
    let known = SCENARIOS.map(|Scenario { name, about, .. }| format!("  {name:18} {about}")).join("\n");
    format!(
        "unknown: {arg}\n\
         bench [--quick] [--shards=N] [--profile=always|everysec] [--growth=N] [--attack=NAME] [scenario …]\n{known}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Setup, Vec<&'static str>), String> {
        let (setup, scenarios) = parse(line.split_whitespace().map(str::to_owned))?;
        Ok((setup, scenarios.iter().map(|scenario| scenario.name).collect()))
    }

    #[test]
    fn without_arguments_everything_is_measured_with_both_profiles() {
        let (setup, names) = parsed("").expect("it is well formed");
        assert_eq!(setup.profiles, [Profile::Always, Profile::EverySec]);
        assert_eq!((setup.size, setup.shards, names.len()), (Size::Full, None, SCENARIOS.len()));
    }

    #[test]
    fn arguments_choose_the_size_the_profile_and_the_scenarios() {
        let (setup, names) = parsed("--quick drain --profile=everysec --shards=8 --growth=10000000 idle")
            .expect("it is well formed");
        assert_eq!((setup.size, setup.shards, setup.growth), (Size::Quick, Some(8), 10_000_000));
        assert_eq!((setup.profiles, names), (vec![Profile::EverySec], vec!["drain", "idle"]));
        let (setup, _) = parsed("attacks --attack=long-lists").expect("it is well formed");
        assert_eq!(setup.attack, Some("long-lists"));
    }

    #[test]
    fn an_unknown_argument_is_refused() {
        for line in ["drian", "--fast", "--profile=never", "--shards=many", "--quick=1", "--attack=none"] {
            assert!(parsed(line).is_err(), "{line} was taken");
        }
    }
}
