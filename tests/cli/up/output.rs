//! The output of `ringback up`: the greeting for people on standard output, whose commands work as printed, the log on
//! standard error, and messages about wrong settings.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use ringback_testkit::{ProcessSpec, free_port};
use tempfile::TempDir;

use crate::cli::keys::ROOT;
use crate::sample_jobs::SOON;

/// How the last line that is for people begins.
const LAST: &str = "The job arrives ";

/// One `ringback up` whose two outputs are read apart; killed when it is dropped.
struct Up {
    child: Child,
    out: BufReader<ChildStdout>,
    api: u16,
    admin: u16,
    dir: TempDir,
}

impl Up {
    /// Starts `ringback up` on a new embedded store, with both ports on this address. Callbacks may go to this machine.
    fn start(ip: &str) -> Self {
        Self::start_with(ip, &["--egress-allow=127.0.0.0/8"])
    }

    /// Starts `ringback up` in the same way, with these flags in place of the permission for callbacks.
    fn start_with(ip: &str, flags: &[&str]) -> Self {
        Self::start_by(ProcessSpec::new("ringback").guarded(), ip, flags)
    }

    fn start_by(spec: ProcessSpec, ip: &str, flags: &[&str]) -> Self {
        Self::start_at(spec, ip, [free_port(), free_port()], flags)
    }

    fn start_at(spec: ProcessSpec, ip: &str, [api, admin]: [u16; 2], flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let spec = spec.arg("up").arg("--store=embedded:./data");
        let spec = spec.arg(&format!("--api-listen={ip}:{api}")).arg(&format!("--admin-listen={ip}:{admin}"));
        let mut command = flags.iter().fold(spec, |spec, flag| spec.arg(flag)).command();
        command.current_dir(&dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, out, api, admin, dir }
    }

    /// Reads the greeting, up to its last line.
    fn greeting(&mut self) -> String {
        self.greeting_to(LAST)
    }

    /// Reads the greeting up to a line that begins with `last`. Panics if the process ends before.
    fn greeting_to(&mut self, last: &str) -> String {
        let mut greeting = String::new();
        loop {
            let from = greeting.len();
            let read = self.out.read_line(&mut greeting).expect("text");
            assert!(read > 0, "it ended: {greeting}{:?}", self.end());
            if greeting[from..].starts_with(last) {
                return greeting;
            }
        }
    }

    /// Kills the process. Returns what else it has printed on standard output and on standard error.
    fn end(&mut self) -> (String, String) {
        self.child.kill().expect("it runs or has run");
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).expect("text");
        if let Some(mut piped) = self.child.stderr.take() {
            piped.read_to_string(&mut err).expect("text");
        }
        (out, err)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs the commands of a greeting from `curl` on in a shell. Returns the id of the job and the output.
async fn typed(greeting: &str) -> (String, String) {
    typed_with(greeting, "").await
}

/// Runs the commands of a greeting with `sh` and a key in `RINGBACK_KEY`. Asserts that they succeed and show the job.
/// Returns the job's id and the output.
async fn typed_with(greeting: &str, key: &str) -> (String, String) {
    let commands: String =
        greeting.lines().filter_map(|line| line.strip_prefix("  ")).collect::<Vec<_>>().join("\n");
    let commands = commands.split_once("curl").map_or("", |(_, rest)| rest);
    let id = commands.split_once("get demo/").and_then(|(_, rest)| rest.split(' ').next()).expect("an id");
    let script = format!("set -e\ncurl{commands}\n");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("RINGBACK_KEY", key);
    let run = tokio::task::spawn_blocking(move || shell.output());
    let run = run.await.expect("it is waited for").expect("a shell");
    let out = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{out}{}", String::from_utf8_lossy(&run.stderr));
    assert!(out.starts_with("HTTP/1.1 201 Created"), "{out}");
    assert!(out.contains(&format!("job       demo/{id}\nstate     delayed\n")), "{out}");
    (id.to_owned(), out)
}

#[tokio::test]
async fn the_commands_that_it_suggests_work_as_printed() {
    let mut up = Up::start("127.0.0.1");
    let greeting = up.greeting();
    for line in [
        format!("  API    http://127.0.0.1:{}/v1", up.api),
        format!("  UI     http://127.0.0.1:{}/ui/", up.api),
        format!("  admin  http://127.0.0.1:{}/readyz, /healthz, /metrics", up.admin),
        format!("  data   {} (embedded)", up.dir.path().join("data").display()),
    ] {
        assert!(greeting.contains(&line), "no {line:?} in {greeting}");
    }
    assert!(greeting.lines().any(|line| line.ends_with("ringback listen")), "{greeting}");
    assert!(greeting.contains(r#""url":"http://127.0.0.1:8080/hook""#), "where it listens: {greeting}");
    typed(&greeting).await;
    let (out, err) = up.end();
    assert_eq!(out.trim(), "", "logs go to standard error");
    assert!(err.contains("connected to the store"), "{err}");
}

#[tokio::test]
async fn where_calls_need_a_key_the_suggested_commands_take_it_from_its_variable() {
    let keyed =
        ProcessSpec::new("ringback").guarded().env("RINGBACK_ROOT_KEY", ROOT).env("RINGBACK_KEY", ROOT);
    let mut up = Up::start_by(keyed, "127.0.0.1", &["--egress-allow=127.0.0.0/8"]);
    let greeting = up.greeting();
    assert!(greeting.contains("\n  export RINGBACK_KEY=..."), "{greeting}");
    typed_with(&greeting, ROOT).await;
    let (_, err) = up.end();
    assert!(!greeting.contains(ROOT) && !err.contains(ROOT), "{greeting}{err}");
    assert!(!err.contains("no Ringback process reads it"), "{err}");
}

#[tokio::test]
async fn with_the_demo_receiver_the_suggested_job_arrives() {
    let mut up = Up::start_with("127.0.0.1", &["--demo=0", "--json"]);
    let greeting = up.greeting();
    assert!(!greeting.contains("ringback listen"), "{greeting}");
    let (id, _) = typed(&greeting).await;
    let (mut line, arrived) = (String::new(), format!(r#""ringback-job-id":"{id}""#));
    while !line.contains(&arrived) {
        line.clear();
        assert!(up.out.read_line(&mut line).expect("text") > 0, "it ended: {:?}", up.end());
    }
    assert!(line.contains(r#""path":"/hook""#) && line.contains(r#""status":200"#), "{line}");
    assert!(line.contains(r#""body":"{\"hello\":\"world\"}""#), "{line}");
    let url = greeting.split("\"url\":\"").nth(1).and_then(|rest| rest.split("/hook").next());
    let taken = url.and_then(|url| url.rsplit(':').next()).expect("a port").to_owned();
    let (api, admin) = (free_port(), free_port());
    let second = ProcessSpec::new("ringback").arg("up").arg(&format!("--demo={taken}"));
    let second = second.arg(&format!("--api-listen=127.0.0.1:{api}"));
    let mut second = second.arg(&format!("--admin-listen=127.0.0.1:{admin}")).start();
    assert_eq!(second.wait_exit(SOON).await.code(), Some(1));
    assert!(second.log().contains(&format!("cannot listen on port {taken}")), "{}", second.log());
}

#[tokio::test]
async fn beside_another_that_runs_it_says_so_and_what_to_do() {
    let mut up = Up::start_with("127.0.0.1", &[]);
    up.greeting_to("Callbacks to this machine are refused.");
    let (api, admin) = (format!("127.0.0.1:{}", up.api), format!("127.0.0.1:{}", up.admin));
    let free = || format!("127.0.0.1:{}", free_port());
    for (what, taken, api, admin) in
        [("API", &api, api.clone(), free()), ("admin port", &admin, free(), admin.clone())]
    {
        let second = ProcessSpec::new("ringback").arg("up").arg("--demo=0");
        let second = second.arg(&format!("--store=embedded:{}", up.dir.path().join("second").display()));
        let mut second = second.arg("--api-listen").arg(&api).arg("--admin-listen").arg(&admin).start();
        assert_eq!(second.wait_exit(SOON).await.code(), Some(1), "{what}");
        let log = second.log();
        let said = format!("another Ringback runs on this machine: it has the {what} address {taken}");
        assert!(log.contains(&said) && log.contains("--store embedded:./"), "{log}");
        assert!(!log.contains("Address already in use"), "{log}");
    }
    up.end();
}

#[tokio::test]
async fn where_callbacks_to_this_machine_are_refused_it_says_how_to_allow_them() {
    let mut up = Up::start_with("127.0.0.1", &[]);
    let greeting = up.greeting_to("Callbacks to this machine are refused.");
    assert!(greeting.contains("  API    http://127.0.0.1:"), "{greeting}");
    assert!(!greeting.contains("curl"), "{greeting}");
    let mut line = String::new();
    while !line.trim_end().ends_with(" up --egress-allow=127.0.0.0/8,::1 --egress-hosts=localhost") {
        line.clear();
        assert!(up.out.read_line(&mut line).expect("text") > 0, "it ended: {:?}", up.end());
    }
}

#[tokio::test]
async fn with_port_0_it_prints_the_port_that_the_system_chose() {
    let spec = ProcessSpec::new("ringback").guarded();
    let mut up = Up::start_at(spec, "127.0.0.1", [0, free_port()], &["--egress-allow=127.0.0.0/8"]);
    let greeting = up.greeting();
    let url = greeting.lines().find_map(|line| line.trim().strip_prefix("API    http://127.0.0.1:"));
    let port = url.and_then(|rest| rest.strip_suffix("/v1")?.parse::<u16>().ok());
    assert!(port.is_some_and(|port| port > 0), "{greeting}");
    assert!(
        greeting.contains(&format!("curl -i http://127.0.0.1:{}/v1", port.unwrap_or_default())),
        "{greeting}"
    );
}

#[tokio::test]
async fn it_warns_when_others_can_reach_it() {
    let mut up = Up::start_with("0.0.0.0", &["--egress-allow=127.0.0.0/8", "--insecure=1"]);
    let greeting = up.greeting();
    assert!(greeting.contains(&format!("  curl -i http://127.0.0.1:{}/v1/jobs ", up.api)), "{greeting}");
    let (_, err) = up.end();
    let warnings: Vec<_> = err.lines().filter(|line| line.contains("is not limited to loopback")).collect();
    assert_eq!(warnings.len(), 2, "{err}");
    for (warning, what, port) in [(warnings[0], "the API", up.api), (warnings[1], "the admin port", up.admin)]
    {
        assert!(warning.contains("WARN") && warning.contains(what), "{warning}");
        assert!(warning.contains(&format!("0.0.0.0:{port}")), "{warning}");
    }

    let mut up = Up::start("127.0.0.1");
    up.greeting();
    assert!(!up.end().1.contains("WARN"));
}

#[tokio::test]
async fn mistakes_in_the_settings_of_all_roles_are_reported_at_once_with_64() {
    let wrong = [
        ("RINGBACK_STORE", "ftp://x"),
        ("RINGBACK_API_LISTEN", "nonsense"),
        ("RINGBACK_ADMIN_LISTEN", "1:2:3"),
        ("RINGBACK_LOCK_TTL", "banana"),
        ("RINGBACK_CONCURRENCY", "0"),
        ("RINGBACK_LOG_FORMAT", "xml"),
    ];
    let spec = wrong
        .iter()
        .fold(ProcessSpec::new("ringback").arg("up"), |spec, (name, value)| spec.env(name, value));
    let mut process = spec.arg("--retry").arg("1s never").start();
    let status = process.wait_exit(SOON).await;
    let log = process.log();
    assert_eq!(status.code(), Some(64), "{log}");
    for name in wrong.iter().map(|(name, _)| *name).chain(["RINGBACK_RETRY"]) {
        assert!(log.contains(&format!("ringback up: {name} ")), "{name} is not in {log}");
    }
    let mut process = ProcessSpec::new("ringback").arg("up").arg("--colour").start();
    assert_eq!(process.wait_exit(SOON).await.code(), Some(64), "{}", process.log());
}

#[tokio::test]
async fn it_shows_its_settings_and_what_they_are() {
    let spec = || ProcessSpec::new("ringback").arg("up");
    let mut help = spec().arg("--help").start();
    assert_eq!(help.wait_exit(SOON).await.code(), Some(0));
    let words = help.log().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "[env: RINGBACK_STORE] [default: embedded:./ringback-data]",
        "[env: RINGBACK_ADMIN_LISTEN] [default: 127.0.0.1:7412]",
        "--lease-margin",
        "--lock-ttl",
        "--shutdown-timeout",
        "Examples: ringback up ",
    ] {
        assert!(words.contains(part), "no {part} in {words}");
    }
    assert!(words.contains("--demo[=<PORT>]") && !words.contains("--server"), "{words}");
    let mut config = spec()
        .env("RINGBACK_STORE", "redis://:secret@h")
        .arg("--shutdown-timeout")
        .arg("7s")
        .arg("--print-config")
        .start();
    assert_eq!(config.wait_exit(SOON).await.code(), Some(0));
    let shown: BTreeMap<_, _> = config
        .log()
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
    assert_eq!(shown["RINGBACK_STORE"], "redis://:***@h");
    assert_eq!(
        (shown["RINGBACK_SHUTDOWN_TIMEOUT"].as_str(), shown["RINGBACK_CONCURRENCY"].as_str()),
        ("7s", "512")
    );
}
