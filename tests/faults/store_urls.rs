//! Wrong URLs of stores and databases: the error says what is wrong, and no password in a URL is printed, logged or
//! shown, also while its server is away.

use std::process::Stdio;

use ringback_testkit::{ProcessSpec, free_port, http_client};
use tempfile::TempDir;

use crate::sample_jobs::SOON;

/// A text that every password contains.
const CANARY: &str = "CaNaRy";

fn spec(binary: &str, dir: &TempDir, setting: (&str, &str)) -> ProcessSpec {
    let admin = format!("127.0.0.1:{}", free_port());
    let api = format!("127.0.0.1:{}", free_port());
    let data = format!("embedded:{}", dir.path().join(free_port().to_string()).display());
    let spec = ProcessSpec::new(binary);
    let (spec, store) =
        if binary == "ringback" { (spec.arg("up"), data) } else { (spec, "redis://127.0.0.1:1".to_owned()) };
    spec.env("RINGBACK_ADMIN_LISTEN", &admin)
        .env("RINGBACK_API_LISTEN", &api)
        .env("RINGBACK_STORE", &store)
        .env("RINGBACK_LOG", "trace")
        .env(setting.0, setting.1)
}

/// Runs a process that ends by itself. Returns its status and all of its output.
async fn output(spec: ProcessSpec) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::from(spec.command());
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(SOON, output).await.expect("it ends").expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test]
async fn a_url_that_is_wrong_ends_the_start_with_what_is_wrong_and_without_its_password() {
    const STORE: &str = "RINGBACK_STORE";
    const ARCHIVE: &str = "RINGBACK_ARCHIVE";
    let dir = tempfile::tempdir().expect("a directory");
    for (binary, setting, url, said) in [
        ("ringback-api", STORE, "redis://user:1234#CaNaRy@127.0.0.1:1", "%23"),
        ("ringback-api", STORE, "redis://:CaNaRy/b@127.0.0.1:1", "%2F"),
        ("ringback-carrier", STORE, "redis://u:CaNaRy?x@127.0.0.1:1", "%3F"),
        ("ringback-carrier", STORE, "redis://u:Ca@CaNaRy@127.0.0.1:1", "%40"),
        ("ringback-notifier", STORE, "redis://u:CaNaRy%@127.0.0.1:1", "%25"),
        ("ringback-notifier", STORE, "redis-sentinel://:CaNaRy#x@127.0.0.1:1/m", "%23"),
        ("ringback-api", STORE, "redis-cluster://u:CaNaRy[@127.0.0.1:1", "%5B"),
        ("ringback-api", STORE, "redis://127.0.0.1:1?password=CaNaRy", "before the host"),
        ("ringback-api", STORE, "redis://:CaNaRy", "not a store's URL"),
        ("ringback-api", STORE, "mysql://u:CaNaRy@h", "not a store's URL"),
        ("ringback-api", STORE, "u:CaNaRy@h", "not a store's URL"),
        ("ringback-api", STORE, "rediss://:CaNaRy@127.0.0.1:1/#insecure", "RINGBACK_STORE_CA_FILE"),
        ("ringback", ARCHIVE, "postgres://u:CaNaRy#@db.invalid/rb", "%23"),
        ("ringback", ARCHIVE, "postgres://db.invalid/rb?password=CaNaRy&sslmod=require", "sslmod"),
        (
            "ringback-archiver",
            ARCHIVE,
            "postgres://db.invalid/rb?password=CaNaRy&sslmode=verify-ful",
            "verify-full",
        ),
        ("ringback-archiver", ARCHIVE, "postgres://u:CaNaRy@h/d?sslrootcert=/nowhere.pem", "sslrootcert"),
        ("ringback-archiver", ARCHIVE, "host=db.invalid password=CaNaRy", "must be"),
    ] {
        let (code, text) = output(spec(binary, &dir, (setting, url))).await;
        assert!(!text.contains(CANARY), "{binary}, {url}: {text}");
        assert!(code == Some(64) && text.contains(said) && text.contains(setting), "{url}: {code:?} {text}");
    }
    // Arguments that are wrong are quoted.
    for argument in ["--stor=redis://:CaNaRy@h", "redis://:CaNaRy@h"] {
        let (code, text) = output(ProcessSpec::new("ringback-api").arg(argument)).await;
        assert!(code == Some(64) && !text.contains(CANARY), "{code:?} {text}");
    }
    let server = "http://u:CaNaRy@127.0.0.1:1";
    for (code, arguments) in
        [(0, &["stats", "--help"][..]), (2, &["stats"]), (64, &["stats", "--server", "ftp://u:CaNaRy@h"])]
    {
        let spec = ProcessSpec::new("ringback").env("RINGBACK_URL", server);
        let (found, text) = output(arguments.iter().fold(spec, |spec, argument| spec.arg(argument))).await;
        assert!(found == Some(code) && !text.contains(CANARY), "{found:?} {text}");
    }
}

#[tokio::test]
async fn a_feed_file_that_is_wrong_is_refused_without_the_passwords_in_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let query = "select id, due_at from o where due_at >= :from and due_at < :to and id > :after order by id limit :limit";
    for (source, said) in [
        ("postgres://u:CaNaRy#x@h/d", "%23"),
        ("postgres://h/d?password=CaNaRy&sslmode=verify", "verify-full"),
        ("postgres://h/d?password=CaNaRy&sslpassword=CaNaRy", "sslpassword"),
        ("host=h password=CaNaRy", "must be postgres://"),
        ("env:postgres://u:CaNaRy@h/d", "environment variable"),
        ("env:RINGBACK_TEST_SOURCE", "%2F"),
    ] {
        let file = dir.path().join("feeds.toml");
        let text =
            format!("[[feed]]\nname = \"a\"\nsource = \"{source}\"\ntopic = \"t\"\nquery = \"{query}\"\n");
        std::fs::write(&file, text).expect("a file");
        let spec = spec("ringback-feed", &dir, ("RINGBACK_KEEP_DONE", "2h"));
        let spec = spec.env("RINGBACK_TEST_SOURCE", "postgres://u:CaNaRy/x@h/d");
        let (code, text) = output(spec.arg("check").arg(&file.display().to_string())).await;
        assert!(
            code == Some(64) && text.contains(said) && !text.contains(CANARY),
            "{source}: {code:?} {text}"
        );
    }
}

#[tokio::test]
async fn a_password_is_neither_printed_nor_logged_nor_shown_while_its_server_is_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let started: Vec<_> = [
        ("ringback-api", "RINGBACK_STORE", "redis://CaNaRy:CaNaRy@127.0.0.1:1/1"),
        ("ringback-carrier", "RINGBACK_STORE", "redis-cluster://u:CaNaRy@127.0.0.1:1,u:CaNaRy@127.0.0.1:2"),
        (
            "ringback-notifier",
            "RINGBACK_STORE",
            "redis-sentinel://:CaNaRy@127.0.0.1:1/m?sentinel_login=u:CaNaRy",
        ),
        ("ringback", "RINGBACK_ARCHIVE", "postgres://127.0.0.1:1/rb?user=u&pass%77ord=CaNaRy"),
        (
            "ringback-archiver",
            "RINGBACK_ARCHIVE",
            "postgres://u:CaNaRy@127.0.0.1:1/d?options=-c%20a.b%3DCaNaRy",
        ),
    ]
    .into_iter()
    .map(|(binary, setting, url)| {
        let url = url.replace("redis://CaNaRy:", "redis://u:");
        let spec = spec(binary, &dir, (setting, &url))
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://u:CaNaRy@127.0.0.1:1/?token=CaNaRy")
            .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=CaNaRy")
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
            .env("OTEL_TRACES_SAMPLER", "xray");
        (spec.clone().start(), spec)
    })
    .collect();
    for (process, spec) in &started {
        let (code, text) = output(spec.clone().arg("--print-config")).await;
        assert!(code == Some(0) && text.contains("***") && !text.contains(CANARY), "{code:?} {text}");
        process.wait_log("is unavailable", SOON).await;
        for page in ["readyz", "metrics"] {
            let answer = http_client().get(format!("http://{}/{page}", process.admin())).send().await;
            let text = answer.expect("it answers").text().await.expect("text");
            assert!(!text.is_empty() && !text.contains(CANARY), "{page}: {text}");
        }
        let log = process.log();
        assert!(!log.contains(CANARY), "{log}");
        // One line names all variables without effect, without their values.
        let named = log.lines().filter(|line| line.contains("have no effect here")).collect::<Vec<_>>();
        let names = "OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_TRACES_SAMPLER";
        assert!(named.len() == 1 && named[0].contains(names) && !named[0].contains("_HEADERS"), "{named:?}");
    }
}
