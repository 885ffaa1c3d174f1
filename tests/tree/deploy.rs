//! The files under `deploy/`: the compose file, Dockerfile, redis.conf and sample feed have the right services,
//! limits, binaries, ports and variables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ringback_service::config::{ALL_NAMES, PREFIX};
use ringback_service::settings::load_from;
use serde_norway::Value;

/// The roles as services of the compose file: name, admin port, how many.
const ROLES: [(&str, u16, u64); 5] =
    [("api", 7412, 1), ("carrier", 7413, 2), ("notifier", 7414, 2), ("archiver", 7415, 1), ("feed", 7416, 1)];

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file)
}

fn read(file: &str) -> String {
    let path = path(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn compose() -> Value {
    let mut compose: Value = serde_norway::from_str(&read("compose.yaml")).expect("compose.yaml is YAML");
    compose.apply_merge().expect("its merges are mappings");
    compose
}

#[test]
fn the_compose_file_starts_every_role_and_one_redis() {
    let compose = compose();
    let services = compose["services"].as_mapping().expect("services");
    let names: BTreeSet<_> = services.keys().filter_map(Value::as_str).collect();
    assert_eq!(names, ["redis", "api", "carrier", "notifier", "archiver", "archive", "feed"].into());
    for (of_profile, profile) in [("archiver", "archive"), ("archive", "archive"), ("feed", "feed")] {
        assert_eq!(services[of_profile]["profiles"][0], profile, "{of_profile} is started by itself");
    }
    for (role, admin, count) in ROLES {
        let service = &services[role];
        assert_eq!(service["command"][0], format!("ringback-{role}").as_str());
        assert_eq!(service["scale"].as_u64().unwrap_or(1), count, "{role}");
        assert_eq!(service["environment"]["RINGBACK_ADMIN_LISTEN"], format!("0.0.0.0:{admin}").as_str());
        let check: Vec<_> = service["healthcheck"]["test"].as_sequence().expect("a test").iter().collect();
        assert_eq!(check, ["CMD", "ringback-ready", &admin.to_string()], "{role}");
        let mounts = service["volumes"].as_sequence().expect("mounts");
        let is_data = |mount: &&Value| mount["target"] == "/var/lib/ringback" && mount["type"] == "tmpfs";
        assert!(mounts.iter().any(|mount| is_data(&mount)), "{role} would get a volume from the image");
        assert_eq!(service["depends_on"]["redis"]["condition"], "service_healthy", "{role}");
    }
    let command = services["redis"]["command"].as_sequence().expect("a command");
    assert!(command.iter().any(|part| part == "/etc/ringback/redis.conf"), "{command:?}");
}

#[test]
fn the_services_of_the_compose_file_are_limited_and_only_the_notifier_and_the_feed_have_a_way_out() {
    let compose = compose();
    let networks = [
        ("redis", &["store"][..]),
        ("api", &["store", "callers"]),
        ("carrier", &["store"]),
        ("notifier", &["store", "egress"]),
        ("archiver", &["store"]),
        ("archive", &["store"]),
        ("feed", &["store", "databases"]),
    ];
    for (name, expected) in networks {
        let service = &compose["services"][name];
        let found: Vec<_> = service["networks"].as_sequence().expect("networks").iter().collect();
        assert_eq!(found, expected, "{name}");
        for limit in ["mem_limit", "cpus", "pids_limit"] {
            assert!(!service[limit].is_null(), "{name} has no {limit}");
        }
        // PostgreSQL writes beside its data too.
        assert_eq!(service["read_only"] == true, name != "archive", "{name}");
        assert_eq!(service["security_opt"][0], "no-new-privileges:true", "{name}");
    }
    assert_eq!(compose["networks"]["store"]["internal"], true);
    let masquerade = &compose["networks"]["callers"]["driver_opts"];
    assert_eq!(masquerade["com.docker.network.bridge.enable_ip_masquerade"], "false");
    for way_out in ["egress", "databases"] {
        assert!(compose["networks"][way_out].is_null(), "{way_out} has the defaults of a network");
    }
}

#[test]
fn all_roles_of_the_compose_file_keep_ended_jobs_for_as_long() {
    let compose = compose();
    for (role, ..) in ROLES {
        let kept = &compose["services"][role]["environment"]["RINGBACK_KEEP_DONE"];
        assert_eq!(kept, "${RINGBACK_KEEP_DONE:-1h}", "{role}");
    }
}

#[test]
fn the_feed_of_the_compose_file_reads_the_sample_which_has_no_mistakes() {
    let feed = &compose()["services"]["feed"];
    let mount = &feed["volumes"][1];
    assert_eq!((&mount["source"], &mount["target"]), (&"./feed/feeds.toml".into(), &feed["command"][1]));
    assert_eq!(mount["read_only"], true);
    let sample = path("feed/feeds.toml").display().to_string();
    let variables = [("FEEDS", sample.as_str()), ("KEEP_DONE", "1d")];
    let (_, mistakes) = load_from(ringback_feed::Config::SETTINGS, &variables, ringback_feed::Config::load);
    assert_eq!(mistakes, [""; 0]);
}

#[test]
fn redis_in_the_compose_file_has_a_password_that_all_roles_know() {
    let compose = compose();
    let services = &compose["services"];
    let command: Vec<_> = services["redis"]["command"].as_sequence().expect("a command").iter().collect();
    let password = command.iter().position(|part| **part == "--requirepass").map(|at| command[at + 1]);
    let password = password.and_then(Value::as_str).expect("a password");
    assert!(password.starts_with("${REDIS_PASSWORD:?"), "{password} may be empty");
    assert_eq!(services["redis"]["environment"]["REDISCLI_AUTH"], "${REDIS_PASSWORD}");
    for (role, ..) in ROLES {
        let store = &services[role]["environment"]["RINGBACK_STORE"];
        assert_eq!(store, "redis://:${REDIS_PASSWORD}@redis:6379", "{role}");
    }
}

#[test]
fn only_variables_that_exist_are_set() {
    let compose = compose();
    for (role, ..) in ROLES {
        let environment = compose["services"][role]["environment"].as_mapping().expect("an environment");
        for name in environment.keys().filter_map(Value::as_str) {
            assert!(is_read(name), "{role} is given {name}");
        }
    }
    for file in ["compose.yaml", "Dockerfile", "local/stack.sh"] {
        for name in variables_in(&read(file)) {
            assert!(is_read(&name), "{file} names {name}");
        }
    }
}

#[test]
fn the_image_has_every_binary_and_the_health_check() {
    let dockerfile = read("Dockerfile");
    for (role, ..) in ROLES {
        let copy = format!("COPY --from=build /src/target/dist/ringback-{role} /usr/local/bin/");
        assert!(dockerfile.lines().any(|line| line == copy), "no {copy}");
    }
    let copy = "COPY --from=build /src/target/dist/ringback /usr/local/bin/";
    assert!(dockerfile.lines().any(|line| line == copy), "no {copy}");
    assert!(dockerfile.contains("deploy/ready.sh /usr/local/bin/ringback-ready"));
    assert!(dockerfile.lines().any(|line| line == "USER ringback"), "it would run as root");
    assert!(read("Dockerfile.dockerignore").lines().any(|line| line == "!deploy/ready.sh"));
}

#[test]
fn the_redis_settings_keep_accepted_jobs() {
    let text = read("redis.conf");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let settings: BTreeSet<_> = lines.collect();
    let wanted = [
        "maxmemory-policy noeviction",
        "appendonly yes",
        "appendfsync always",
        "no-appendfsync-on-rewrite no",
        "save \"\"",
        "lazyfree-lazy-expire yes",
    ];
    assert_eq!(settings, wanted.into());
}

/// Whether some process reads a variable.
fn is_read(variable: &str) -> bool {
    variable.strip_prefix(PREFIX).is_some_and(|name| ALL_NAMES.contains(&name))
}

/// Every `RINGBACK_NAME` in a text; `RINGBACK_*` is left out.
fn variables_in(text: &str) -> BTreeSet<String> {
    let ends = |c: char| !(c.is_ascii_uppercase() || c == '_');
    text.match_indices("RINGBACK_")
        .map(|(at, _)| text[at..].split(ends).next().unwrap_or_default().to_owned())
        // `RINGBACK_*` stands for all of them.
        .filter(|name| name != "RINGBACK_")
        .collect()
}
