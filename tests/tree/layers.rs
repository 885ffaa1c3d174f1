//! Which crates a crate may depend on, by the manifests. Layers go from the command line down to the model.

use std::collections::BTreeMap;

use crate::files::{crates, read};

/// Each crate, and those that it may depend on.
const ALLOWED: [(&str, &[&str]); 22] = [
    ("core", &[]),
    ("wire", &["core"]),
    ("egress", &[]),
    ("secrets", &["core"]),
    ("postgres", &["core", "secrets"]),
    ("store-redis", &["core"]),
    ("store-embedded", &["core"]),
    ("store", &["core", "wire", "store-redis", "store-embedded"]),
    ("service", &["core", "wire"]),
    ("archive", &["core", "wire", "store", "service"]),
    ("admission", &["core", "wire", "egress", "store", "service"]),
    ("api", &["admission", "core", "wire", "egress", "secrets", "store", "service", "archive"]),
    ("carrier", &["core", "wire", "store", "service"]),
    ("notifier", &["core", "wire", "egress", "secrets", "store", "service"]),
    ("archiver", &["core", "store", "service", "archive", "postgres"]),
    ("feed", &["core", "wire", "egress", "store", "service", "admission", "postgres"]),
    (
        "cli",
        &["core", "wire", "egress", "secrets", "store", "service", "api", "carrier", "notifier", "archive"],
    ),
    ("testkit", &["core", "wire", "store"]),
    ("bench", &["core", "wire", "store", "testkit"]),
    ("fuzz", &[]),
    ("simulation", &[]),
    ("chaos", &["testkit"]),
];

#[test]
fn crates_depend_only_on_crates_below_them() {
    let allowed = BTreeMap::from(ALLOWED);
    for (name, source) in crates() {
        let folder = source.parent().expect("a crate has a folder");
        let crate_name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
        let below = allowed.get(crate_name).unwrap_or_else(|| panic!("{name} is in no layer: add it here"));
        let manifest = read(&folder.join("Cargo.toml"));
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        for dependency in dependencies.lines().filter_map(|line| line.strip_prefix("ringback-")) {
            let dependency = dependency.split(['.', ' ']).next().unwrap_or_default();
            assert!(below.contains(&dependency), "{crate_name} must not depend on {dependency}");
        }
    }
}
