//! Redis refuses processes for a while, as when passwords or rights change: running ones wait, and starting ones end.

use redis::aio::MultiplexedConnection;
use ringback_testkit::{Process, RedisServer, Role, http_client};

use super::redis_outage::{accepted_again, still_the_same_processes};
use super::refusals::is_accepted;
use crate::prelude::*;

/// How long it may take until everything works again: checks and back-offs, on a busy machine too.
const RECOVERY: Duration = Duration::from_secs(60);
/// In the log of a process that is refused, which also says what to do.
const LOGGED: &str = "fix it there, or restart it with the right settings";
/// The user of the processes, which has all permissions.
const USER: &str = "ringback";

async fn run(redis: &mut MultiplexedConnection, commands: &[&str]) {
    for command in commands {
        let words: Vec<_> = command.split(' ').collect();
        let mut cmd = redis::cmd(words[0]);
        // `-` stands for nothing.
        cmd.arg(words[1..].iter().map(|word| if *word == "-" { "" } else { word }).collect::<Vec<_>>());
        cmd.exec_async(redis).await.unwrap_or_else(|error| panic!("{command}: {error}"));
    }
}

/// A server with the user, and a function that makes its URL with a password.
async fn server() -> (RedisServer, impl Fn(&str) -> String) {
    let server = RedisServer::start().await;
    run(&mut server.client().await, &[&format!("ACL SETUSER {USER} on >first ~* &* +@all")]).await;
    let port = server.port();
    (server, move |password: &str| format!("redis://{USER}:{password}@127.0.0.1:{port}"))
}

/// Runs a stack while the commands `refuse` lock it out, until the commands `accept` let it in again. Asserts that no
/// job is lost, that no process ends, and that each process logs the refusal once.
async fn through(server: &RedisServer, url: &str, refuse: &[&str], accept: &[&str]) {
    let mut redis = server.client().await;
    let (mut stack, sink) = (Stack::options().store(url).start().await, Sink::start().await);
    let ids: Vec<String> = (0..50).map(|n| format!("job-{n}")).collect();
    let jobs: Vec<Value> = ids.iter().map(|id| with(job(&sink, id), "delay", "2s")).collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 50);

    run(&mut redis, refuse).await;
    let processes = || stack.processes();
    for process in processes() {
        is_refused(process).await;
    }
    assert!(!is_accepted(&stack, &job(&sink, "refused"), "cannot be used as it is set up").await);

    run(&mut redis, accept).await;
    accepted_again(&stack, &job(&sink, "back")).await;
    sink.wait_for_jobs(&ids, 1, RECOVERY).await;
    sink.wait_for_job("back", 1, RECOVERY).await;
    for process in processes() {
        assert_eq!(process.log().matches(LOGGED).count(), 1, "{}", process.log());
    }
    stack.ready(RECOVERY).await;
    still_the_same_processes(&mut stack);
}

/// Waits until a process is not ready because the store refuses it, and has logged that.
async fn is_refused(process: &Process) {
    let url = format!("http://{}/readyz", process.admin());
    eventually(SOON, "a process is refused and waits", async || {
        let answer = http_client().get(&url).send().await.map_err(|error| error.to_string())?;
        let (status, text) = (answer.status(), answer.text().await.unwrap_or_default());
        let is_known = ["does not accept", "refused the call"].iter().any(|why| text.contains(why));
        let is_logged = process.log().contains(LOGGED);
        if status == 503 && is_known && is_logged { Ok(()) } else { Err(format!("{status} {text}")) }
    })
    .await;
}

#[tokio::test]
async fn a_password_that_is_refused_for_a_while_ends_no_process() {
    let (server, url) = server().await;
    let refuse = [&*format!("ACL SETUSER {USER} resetpass >second"), &*format!("CLIENT KILL USER {USER}")];
    let accept = [&*format!("ACL SETUSER {USER} >first")];
    through(&server, &url("first"), &refuse, &accept).await;
}

#[tokio::test]
async fn a_password_that_is_asked_for_a_while_of_processes_without_one_ends_none() {
    let server = RedisServer::start().await;
    let refuse =
        ["CONFIG SET requirepass secret", "CLIENT KILL TYPE normal SKIPME yes", "CLIENT KILL TYPE pubsub"];
    through(&server, &server.url(), &refuse, &["CONFIG SET requirepass -"]).await;
}

#[tokio::test]
async fn permissions_that_are_missing_for_a_while_end_no_process() {
    let (server, url) = server().await;
    let refuse = [&*format!("ACL SETUSER {USER} -@all")];
    let accept = [&*format!("ACL SETUSER {USER} +@all")];
    through(&server, &url("first"), &refuse, &accept).await;
}

#[tokio::test]
async fn a_process_that_is_refused_at_its_start_says_why_and_ends() {
    let (server, url) = server().await;
    let stack = Stack::options().store(&url("first")).start().await;
    for role in [Role::Api, Role::Carrier, Role::Notifier] {
        let mut process = stack.spec(role).env("RINGBACK_STORE", &url("wrong")).start();
        let status = process.wait_exit(SOON).await;
        let log = process.log();
        assert!(
            status.code() == Some(1)
                && log.contains("does not accept this process")
                && log.contains("WRONGPASS"),
            "{log}"
        );
    }
    drop(stack);
    drop(server);
}
