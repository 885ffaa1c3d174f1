//! The command line of `bench`.

use clap::{Parser, ValueEnum as _};

use crate::attack::ATTACKS;
use crate::scenarios::{SCENARIOS, Scenario};
use crate::setup::{Profile, Setup, Size};

/// Runs the benchmarks; all of them when none is named.
#[derive(Parser)]
#[command(name = "bench", after_help = list())]
struct Args {
    /// Only to see that the benchmarks work
    #[arg(long)]
    quick: bool,
    /// `RINGBACK_SHARDS`
    #[arg(long, value_name = "N")]
    shards: Option<u16>,
    /// Only with this setting of appendfsync
    #[arg(long)]
    profile: Option<Profile>,
    /// The most pending jobs of growth: more take longer than all other scenarios together
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    growth: usize,
    /// The only attack of attacks
    #[arg(long, value_name = "NAME", value_parser = attack)]
    attack: Option<&'static str>,
    #[arg(value_name = "SCENARIO", value_parser = scenario)]
    scenarios: Vec<&'static Scenario>,
}

/// Parses the arguments into settings and scenarios. Without named scenarios, all of them run.
///
/// # Errors
/// A wrong argument, or a request for help; the error is the text to print.
pub fn parse(args: impl IntoIterator<Item = String>) -> Result<(Setup, Vec<&'static Scenario>), clap::Error> {
    let program = "bench".to_owned();
    let args = Args::try_parse_from(std::iter::once(program).chain(args))?;
    let Args { quick, shards, profile, growth, attack, mut scenarios } = args;
    let size = if quick { Size::Quick } else { Size::Full };
    let profiles = profile.map_or_else(|| Profile::value_variants().to_vec(), |only| vec![only]);
    if scenarios.is_empty() {
        scenarios = SCENARIOS.iter().collect();
    }
    Ok((Setup { size, shards, profiles, growth, attack }, scenarios))
}

fn attack(name: &str) -> Result<&'static str, String> {
    let names = || ATTACKS.iter().map(|attack| attack.name);
    let known = || format!("not one of {}", names().collect::<Vec<_>>().join(", "));
    names().find(|known| *known == name).ok_or_else(known)
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    SCENARIOS.iter().find(|known| known.name == name).ok_or_else(|| format!("not one of these:\n{}", list()))
}

fn list() -> String {
    SCENARIOS.map(|Scenario { name, about, .. }| format!("  {name:18} {about}")).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Setup, Vec<&'static str>), clap::Error> {
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
