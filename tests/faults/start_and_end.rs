//! How processes start and end: signals, grace, wrong settings, unfit stores, and shards that change their carrier.

use ringback_testkit::{Process, ProcessSpec, RedisServer, Role, free_port, http_client};

use crate::prelude::*;
use crate::sample_jobs::{between, time};

const ROLES: [Role; 3] = [Role::Api, Role::Carrier, Role::Notifier];

#[tokio::test]
async fn every_role_ends_with_0_when_it_is_asked_to() {
    let mut stack = Stack::start().await;
    for process in [&mut stack.apis[0], &mut stack.carriers[0], &mut stack.notifiers[0]] {
        process.term();
        let status = process.wait_exit(SOON).await;
        assert_eq!(status.code(), Some(0), "{}", process.log());
    }
}

#[tokio::test]
async fn a_process_without_a_terminal_goes_on_at_sighup_and_reads_its_certificate_again() {
    let stack = StackOptions::api_only().start().await;
    let tls = tempfile::tempdir().expect("a temp directory");
    let file = |name: &str| format!("{}/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| tls.path().join(name));
    let put = |name: &str| {
        std::fs::copy(file(&format!("{name}.pem")), &certificate).expect("a certificate");
        std::fs::copy(file(&format!("{name}.key")), &key).expect("a key");
    };
    put("api");
    let spec = stack.spec(Role::Api).without_terminal();
    let spec = spec
        .env("RINGBACK_TLS_CERT", &certificate.to_string_lossy())
        .env("RINGBACK_TLS_KEY", &key.to_string_lossy());
    let mut with_certificate = spec.start();
    let plain =
        [Role::Api, Role::Carrier, Role::Notifier].map(|role| stack.spec(role).without_terminal().start());
    for mut process in plain {
        process.ready(SOON).await;
        process.hang_up();
        process.hang_up();
        process.wait_log("SIGHUP", SOON).await;
        process.ready(SOON).await;
        process.term();
        assert_eq!(process.wait_exit(SOON).await.code(), Some(0), "{}", process.log());
    }
    with_certificate.ready(SOON).await;
    put("renewed");
    with_certificate.hang_up();
    let is_read = async || {
        with_certificate.log().contains("the certificate was read again").then_some(()).ok_or("not yet")
    };
    // The file is read sooner than without the signal, and without a connection.
    eventually(Duration::from_secs(3), "it is read", is_read).await;
}

#[tokio::test]
async fn every_role_ends_with_0_while_redis_is_gone() {
    let mut stack = Stack::start().await;
    stack.redis_mut().kill();
    stack.skip_check();
    for process in [&mut stack.apis[0], &mut stack.carriers[0], &mut stack.notifiers[0]] {
        process.term();
        let status = process.wait_exit(Duration::from_secs(40)).await;
        assert_eq!(status.code(), Some(0), "{}", process.log());
    }
}

#[tokio::test]
async fn a_notifier_finishes_its_call_before_it_ends() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    sink.answer_job("flies", Answer::status(200).held());
    stack.accept(&job(&sink, "flies")).await;
    sink.wait_for_job("flies", 1, SOON).await;

    stack.notifiers[0].term();
    is_no_longer_ready(&stack.notifiers[0]).await;
    sink.release();
    let status = stack.notifiers[0].wait_exit(SOON).await;
    assert_eq!(status.code(), Some(0));
    let done = stack.wait_state(TOPIC, "flies", "done", SOON).await;
    assert_eq!(done["attempts"], 1, "{done}");
    assert_eq!(sink.seen(), 1);
}

#[tokio::test]
async fn a_notifier_gives_back_what_it_cannot_finish_in_its_grace() {
    let options = Stack::options().role_env(Role::Notifier, "RINGBACK_SHUTDOWN_TIMEOUT", "1s");
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    sink.answer_job("hangs", Answer::status(200).held());
    stack.accept(&job(&sink, "hangs")).await;
    sink.wait_for_job("hangs", 1, SOON).await;

    stack.notifiers[0].term();
    stack.notifiers[0].wait_exit(Duration::from_secs(10)).await;
    sink.answer_job("hangs", Answer::status(200));
    stack.add(Role::Notifier).await;
    let done = stack.wait_state(TOPIC, "hangs", "done", SOON).await;
    assert_eq!((&done["attempts"], &done["failures"]), (&Value::from(2), &Value::from(0)), "{done}");
}

#[tokio::test]
async fn an_api_that_ends_takes_no_job_with_it() {
    let (mut stack, sink) = (Stack::start().await, Sink::start().await);
    let jobs: Vec<Value> = (0..1_000).map(|n| job(&sink, &format!("job-{n}"))).collect();
    stack.accept(&job(&sink, "first")).await;
    let (batch, ()) = {
        let text = Value::from(jobs.clone()).to_string();
        let client = http_client();
        let request =
            client.post(stack.url("/v1/jobs/batch")).header("content-type", "application/json").body(text);
        let api = &mut stack.apis[0];
        tokio::join!(request.send(), async { api.term() })
    };
    assert_eq!(stack.apis[0].wait_exit(SOON).await.code(), Some(0));
    // The connection may have come too late; an answer that was given counts.
    if let Ok(answer) = batch
        && answer.status() == 200
    {
        let ids: Vec<String> = (0..1_000).map(|n| format!("job-{n}")).collect();
        sink.wait_for_jobs(&ids, 1, SOON).await;
    }
    sink.wait_for_job("first", 1, SOON).await;
}

#[tokio::test]
async fn a_carrier_that_is_asked_to_end_releases_its_shards_at_once() {
    // Waiting for its locks to run out would make jobs later than this.
    let lateness = shards_move("10s", Process::term).await;
    assert!(lateness < Duration::from_secs(3), "{lateness:?} late");
}

#[tokio::test]
async fn the_shards_of_a_killed_carrier_move_within_its_locks() {
    let lateness = shards_move("2s", Process::kill).await;
    assert!(lateness < Duration::from_secs(5), "{lateness:?} late");
}

/// Runs a process until it ends, and asserts its status and that its output contains all of `texts`. Returns the output.
async fn ends(spec: ProcessSpec, status: i32, texts: &[&str]) -> String {
    let mut process = spec.start();
    let ended = process.wait_exit(SOON).await;
    let log = process.log();
    assert_eq!(ended.code(), Some(status), "{log}");
    for text in texts {
        assert!(log.contains(text), "no {text} in {log}");
    }
    log
}

#[tokio::test]
async fn every_mistake_of_the_configuration_is_named_at_once() {
    let ttl = "RINGBACK_LOCK_TTL";
    let (margin, timeout) = ("RINGBACK_LEASE_MARGIN", "RINGBACK_SHUTDOWN_TIMEOUT");
    for (role, variables, texts) in [
        (
            Role::Api,
            &[("RINGBACK_STORE", "ftp://x"), ("RINGBACK_API_LISTEN", "nonsense"), (timeout, "-3s")][..],
            &[][..],
        ),
        (
            Role::Carrier,
            &[("RINGBACK_ADMIN_LISTEN", "1:2:3"), (ttl, "banana"), ("RINGBACK_LOG_FORMAT", "xml")],
            &[],
        ),
        (
            Role::Notifier,
            &[(margin, "x"), ("RINGBACK_RETRY", "1s never"), ("RINGBACK_CONCURRENCY", "0")],
            &[],
        ),
        // Settings that contradict each other.
        (Role::Carrier, &[(ttl, "9s"), (timeout, "2s")], &["at least 3s"]),
        (Role::Notifier, &[(margin, "10s"), (timeout, "0s")], &["at least 3s"]),
    ] {
        let spec = ProcessSpec::new(role.binary());
        let spec = variables.iter().fold(spec, |spec, (name, value)| spec.env(name, value));
        let names: Vec<_> = variables.iter().map(|(name, _)| *name).collect();
        ends(spec, 64, &[&names, texts].concat()).await;
    }
}

#[tokio::test]
async fn more_callbacks_than_files_may_be_open_are_refused() {
    let notifier = std::env::current_exe().expect("a path").with_file_name("").join("../ringback-notifier");
    let run = |concurrency: &str| {
        let script = format!("ulimit -n 200; exec {} --print-config", notifier.display());
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(script).env("RINGBACK_CONCURRENCY", concurrency);
        command.output().expect("a shell")
    };
    let refused = run("137");
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(64), "{errors}");
    assert!(errors.contains("RINGBACK_CONCURRENCY") && errors.contains("at most 136"), "{errors}");
    assert_eq!(run("136").status.code(), Some(0));
}

#[tokio::test]
async fn flags_are_known_or_refused_and_the_printed_configuration_hides_passwords() {
    for role in ROLES {
        let spec = || ProcessSpec::new(role.binary());
        ends(spec().arg("--no-such-flag"), 64, &["--no-such-flag"]).await;
        ends(spec().arg("--help"), 0, &["--store", "--admin-listen", "--print-config"]).await;
        let printing = spec().arg("--print-config").env("RINGBACK_STORE", "redis://name:hunter2@127.0.0.1:1");
        let printed = ends(printing, 0, &["127.0.0.1:1"]).await;
        assert!(!printed.contains("hunter2"), "{printed}");
    }
}

#[tokio::test]
async fn a_redis_that_throws_jobs_out_is_refused() {
    let redis = RedisServer::options().maxmemory_policy("allkeys-lru").start().await;
    for role in ROLES {
        let listen = format!("127.0.0.1:{}", free_port());
        let api_listen = format!("127.0.0.1:{}", free_port());
        let spec = ProcessSpec::new(role.binary()).env("RINGBACK_STORE", &redis.url());
        let mut process =
            spec.env("RINGBACK_ADMIN_LISTEN", &listen).env("RINGBACK_API_LISTEN", &api_listen).start();
        let status = process.wait_exit(SOON).await;
        assert_ne!(status.code(), Some(0), "{}", process.log());
        assert!(process.log().contains("noeviction"), "{}", process.log());
    }
}

/// Ends one of two carriers, and returns the greatest lateness of jobs that were due right afterwards.
async fn shards_move(lock_ttl: &str, end: impl Fn(&mut Process)) -> Duration {
    let options = Stack::options().count(Role::Carrier, 2).lock_ttl(lock_ttl);
    let (mut stack, sink) = (options.start().await, Sink::start().await);
    end(&mut stack.carriers[0]);
    stack.carriers[0].wait_exit(SOON).await;
    // Enough jobs to have some in every shard.
    let ids: Vec<String> = (0..200).map(|n| format!("job-{n}")).collect();
    let jobs: Vec<Value> = ids.iter().map(|id| with(job(&sink, id), "delay", "100ms")).collect();
    let (status, answer) = stack.batch(&jobs).await;
    assert_eq!((status, &answer["accepted"]), (200, &Value::from(200)), "{answer}");
    sink.wait_for_jobs(&ids, 1, SOON).await;
    let due = time(&answer["results"][0]["job"]["due_at"]);
    sink.arrivals().iter().map(|arrival| between(due, arrival.at)).max().unwrap_or_default()
}

/// Waits until `/readyz` is not 200, or the admin port is closed.
async fn is_no_longer_ready(process: &Process) {
    let url = format!("http://{}/readyz", process.admin());
    let client = http_client();
    eventually(SOON, "it is no longer ready", async || match client.get(&url).send().await {
        Ok(answer) if answer.status() == 200 => Err("it still is"),
        _ => Ok(()),
    })
    .await;
}
