//! Runs the guides as printed: the `sh` blocks of each page run in one shell from top to bottom, against a `ringback
//! up` that the test or the page starts. A page whose tools are not installed is left out.
//!
//! Only ports differ from what is printed, so that pages can run at the same time: 7411, 7412 and those of receivers
//! become free ports, and `ringback listen` gets one. Commands without a URL find the API by `RINGBACK_URL`.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use ringback_testkit::{ProcessSpec, StackOptions, eventually, free_port};

/// How long a page may take.
const LIMIT: Duration = Duration::from_secs(120);
/// The tools that a page may use.
const TOOLS: [&str; 5] = ["curl", "jq", "openssl", "python3", "sqlite3"];
/// The ports in the pages: those of the API, of its admin port, and of receivers.
const PORTS: [u16; 10] = [7411, 7412, 8080, 8081, 8082, 8083, 8084, 8085, 8086, 8090];

macro_rules! pages {
    ($($name:ident: $page:literal;)+) => {
        $(#[tokio::test]
        async fn $name() {
            run($page).await;
        })+

        const PAGES: &[&str] = &[$($page),+];
    };
}

pages! {
    the_start_page_works: "start.md";
    a_key_for_a_team_works: "guides/a-key-for-a-team.md";
    after_an_outage_works: "guides/after-an-outage.md";
    close_unpaid_orders_works: "guides/close-unpaid-orders.md";
    debounce_works: "guides/debounce.md";
    deliver_in_order_works: "guides/deliver-in-order.md";
    find_and_cancel_works: "guides/find-and-cancel.md";
    finished_jobs_in_sql_works: "guides/finished-jobs-in-sql.md";
    limit_a_receiver_works: "guides/limit-a-receiver.md";
    notify_until_acknowledged_works: "guides/notify-until-acknowledged.md";
    pull_workers_works: "guides/pull-workers.md";
    recurring_jobs_works: "guides/recurring-jobs.md";
    reminders_and_time_zones_works: "guides/reminders-and-time-zones.md";
    test_your_receiver_works: "guides/test-your-receiver.md";
    verify_signatures_works: "guides/verify-signatures.md";
}

#[test]
fn every_guide_with_commands_is_run() {
    let guides = fs::read_dir(documents().join("guides")).expect("a folder");
    for guide in guides.map(|entry| entry.expect("an entry").file_name()) {
        let page = format!("guides/{}", guide.to_string_lossy());
        assert_eq!(PAGES.contains(&page.as_str()), !script(&page).is_empty(), "{page}");
    }
}

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// The `sh` blocks of a page, joined.
fn script(page: &str) -> String {
    let text = fs::read_to_string(documents().join(page)).expect("the page can be read");
    let blocks = text.split("\n```sh\n").skip(1);
    blocks.filter_map(|rest| rest.split("\n```").next()).map(|block| format!("{block}\n")).collect()
}

/// Replaces the printed ports in a script by free ones.
fn with_free_ports(script: &str, ports: &[(u16, u16)]) -> String {
    let explicit = script.replace("ringback listen &", "ringback listen --listen 8080 &");
    let with_free = |part: &str| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let free = ports.iter().find(|(printed, _)| printed.to_string() == part[..end]);
        free.map_or_else(|| part.to_owned(), |(_, free)| format!("{free}{}", &part[end..]))
    };
    explicit.split_inclusive(|c: char| !c.is_ascii_digit()).map(with_free).collect()
}

#[expect(clippy::print_stderr, reason = "a page that is left out says why")]
async fn run(page: &str) {
    let printed = script(page);
    let used = TOOLS.into_iter().filter(|tool| printed.split_whitespace().any(|word| word.ends_with(tool)));
    let missing: Vec<_> = used.filter(|tool| Command::new(tool).arg("--version").output().is_err()).collect();
    if !missing.is_empty() {
        return eprintln!("{page} is left out: {missing:?} are not installed");
    }
    let starts_its_own = printed.lines().any(|line| line.ends_with("ringback up &"));
    let stack = if starts_its_own { None } else { Some(StackOptions::embedded().start().await) };
    let mut ports: Vec<_> = PORTS.map(|port| (port, free_port())).into();
    if let Some(stack) = &stack {
        let port = stack.url("").rsplit(':').next().and_then(|port| port.parse().ok());
        ports[0].1 = port.expect("the URL has a port");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("page.log");
    let mut shell = Shell::start(&with_free_ports(&printed, &ports), &ports, folder.path(), &output);
    eventually(LIMIT, &format!("{page} is done"), async || match shell.0.try_wait() {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => {
            panic!("{page} ends with {status}:\n{}", fs::read_to_string(&output).unwrap_or_default())
        }
        Ok(None) => Err(fs::read_to_string(&output).unwrap_or_default()),
        Err(error) => Err(error.to_string()),
    })
    .await;
}

/// A shell with what it has started, which ends with it.
struct Shell(Child);

impl Shell {
    /// Starts a script in `bash -eux`, which prints its commands and ends at the first failure; output goes to a file.
    fn start(script: &str, ports: &[(u16, u16)], folder: &Path, output: &Path) -> Self {
        let file = File::create(output).expect("a file");
        // The environment without variables of Ringback, and the place of the binaries.
        let ringback = ProcessSpec::new("ringback").command();
        let binaries = Path::new(ringback.get_program()).parent().expect("a folder");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths([binaries.to_owned()].into_iter().chain(std::env::split_paths(&path)));
        let mut command = Command::new("bash");
        command.args(["-euxo", "pipefail", "-c", script]).current_dir(folder).process_group(0);
        for (name, _) in ringback.get_envs().filter(|(_, value)| value.is_none()) {
            command.env_remove(name);
        }
        command
            .env("PATH", path.expect("a list of folders"))
            .env("RINGBACK_URL", format!("http://127.0.0.1:{}", ports[0].1))
            .env("RINGBACK_API_LISTEN", format!("127.0.0.1:{}", ports[0].1))
            .env("RINGBACK_ADMIN_LISTEN", format!("127.0.0.1:{}", ports[1].1))
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle"))
            .stderr(file);
        Self(command.spawn().expect("a shell"))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.0.id().try_into().expect("a process id"));
        // Background processes of the script are in its group. An error means that all of them have ended.
        killpg(group, Signal::SIGKILL).ok();
        self.0.wait().ok();
    }
}
