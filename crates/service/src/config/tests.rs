//! Tests of `Lookup`: sources of values, mistakes, hidden secrets.

use super::*;

const GROUP: &[Setting] = &[
    Setting::new("STORE", "redis://127.0.0.1:6379", "where jobs are kept"),
    Setting::new("LOCK_TTL", "5s", "carrier lock"),
    Setting::new("SHARDS", "8", "number of shards"),
];
const OTHER: &[Setting] = &[Setting::new("STORE", "embedded:./data", "where jobs are kept")];

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn lookup(flags: &[(&str, &str)], env: &[(&str, &str)]) -> Lookup {
    Lookup::new(&[GROUP], pairs(flags), pairs(env))
}

fn lines(lookup: &Lookup) -> Vec<String> {
    lookup.mistakes().iter().map(Mistake::to_string).collect()
}

#[test]
fn a_setting_knows_its_variable_and_its_flag() {
    assert_eq!(GROUP[1].env(), "RINGBACK_LOCK_TTL");
    assert_eq!(GROUP[1].flag().as_deref(), Some("--lock-ttl"));
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_default() {
    let env = [("RINGBACK_LOCK_TTL", "6s"), ("RINGBACK_SHARDS", "16")];
    let mut lookup = lookup(&[("LOCK_TTL", "7s")], &env);
    assert_eq!(lookup.duration_in("LOCK_TTL", Duration::ZERO..=Duration::MAX), Duration::from_secs(7));
    assert_eq!(lookup.number_in("SHARDS", 1..=64_u16), 16);
    assert_eq!(lookup.text("STORE"), "redis://127.0.0.1:6379");
    assert!(lookup.mistakes().is_empty());
}

#[test]
fn an_empty_variable_counts_as_unset() {
    assert_eq!(lookup(&[], &[("RINGBACK_SHARDS", "")]).parse::<u16>("SHARDS"), 8);
}

#[test]
fn all_mistakes_are_found_at_once_and_defaults_stand_in() {
    let mut lookup = lookup(&[("LOCK_TTL", "5")], &[("RINGBACK_SHARDS", "many")]);
    assert_eq!(lookup.duration_in("LOCK_TTL", Duration::ZERO..=Duration::MAX), Duration::from_secs(5));
    assert_eq!(lookup.number_in("SHARDS", 1..=64_u32), 8);
    lookup.reject("STORE", "no such server");
    let expected = [
        "RINGBACK_LOCK_TTL (or --lock-ttl) is \"5\": must be a duration with a unit, such as 250ms, 5s or 1h 30m",
        "RINGBACK_SHARDS (or --shards) is \"many\": must be a whole number from 1 to 64",
        "RINGBACK_STORE (or --store) is \"redis://127.0.0.1:6379\": no such server",
    ];
    assert_eq!(lines(&lookup), expected);
}

#[test]
fn the_same_mistake_is_recorded_once() {
    let mut lookup = lookup(&[("SHARDS", "0")], &[]);
    lookup.number_in("SHARDS", 1..=64_usize);
    lookup.number_in("SHARDS", 1..=64_usize);
    assert_eq!(lookup.mistakes().len(), 1);
}

#[test]
fn a_duration_outside_its_range_is_a_mistake_that_names_the_range() {
    let range = Duration::from_millis(100)..=Duration::from_secs(600);
    assert_eq!(duration_within(" 1.5s ", &range), Ok(Duration::from_millis(1500)));
    assert_eq!(duration_within("0s", &range).unwrap_err(), "must be from 100ms to 10m");
    assert!(duration_within("1 month", &range).unwrap_err().ends_with("write days, such as 30d"));
}

#[test]
fn the_error_of_a_parser_is_shown() {
    let mut lookup = lookup(&[("SHARDS", "-1")], &[]);
    assert_eq!(lookup.parse::<u16>("SHARDS"), 8);
    assert_eq!(
        lines(&lookup),
        ["RINGBACK_SHARDS (or --shards) is \"-1\": it is not a whole number, or less than 0"]
    );
}

#[test]
fn passwords_are_never_shown() {
    let url = "redis://app:hunter2@db:6379";
    let mut lookup = lookup(&[("STORE", url)], &[]);
    lookup.reject("STORE", format!("cannot read {url}"));
    let expected =
        ["RINGBACK_STORE (or --store) is \"redis://app:***@db:6379\": cannot read redis://app:***@db:6379"];
    assert_eq!(lines(&lookup), expected);
    let shown = lookup.effective();
    assert_eq!(shown[0].1, "redis://app:***@db:6379");
}

#[test]
fn a_secret_is_never_shown_and_has_no_flag() {
    const SECRETS: &[Setting] = &[Setting::secret(("MASTER_KEYS", "", "keys"))];
    let env = BTreeMap::from([("RINGBACK_MASTER_KEYS".to_owned(), "k:hunter2".to_owned())]);
    let mut lookup = Lookup::new(&[SECRETS], BTreeMap::new(), env);
    lookup.reject("MASTER_KEYS", "k:hunter2 is too short");
    assert_eq!(lines(&lookup), ["RINGBACK_MASTER_KEYS is \"***\": *** is too short"]);
    assert_eq!(lookup.effective(), [("RINGBACK_MASTER_KEYS".to_owned(), "***".to_owned())]);
    assert_eq!(lookup.text("MASTER_KEYS"), "k:hunter2");
    let unset = Lookup::new(&[SECRETS], BTreeMap::new(), BTreeMap::new());
    assert_eq!(unset.effective()[0].1, "", "whether it is set may be seen");
}

#[test]
fn the_first_group_that_lists_a_name_gives_its_default() {
    let mut lookup = Lookup::new(&[OTHER, GROUP], BTreeMap::new(), BTreeMap::new());
    assert_eq!(lookup.text("STORE"), "embedded:./data");
    assert_eq!(lookup.effective().len(), GROUP.len());
}

#[test]
fn a_variable_that_no_process_reads_is_reported_and_one_of_another_process_is_not() {
    let env =
        [("RINGBACK_LOK_TTL", "5s"), ("RINGBACK_KEEP_DEAD", "7d"), ("RINGBACK_SHARDS", "4"), ("OTEL_X", "1")];
    assert_eq!(lookup(&[], &env).unknown_variables(), ["RINGBACK_LOK_TTL"]);
}

#[test]
#[should_panic(expected = "no group of this process lists the setting NOPE")]
fn a_name_that_no_group_lists_is_a_bug() {
    lookup(&[], &[]).text("NOPE");
}
