//! A healthy receiver behind nginx, which ends connections after some requests and reloads its settings: no callback
//! fails because of that. `RINGBACK_TEST_CALLBACKS` is the number of callbacks. The tests are left out without nginx.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ringback_testkit::{NameServer, free_port, variable};
use tempfile::TempDir;

use super::raw_receiver::file;
use crate::prelude::*;

const NAME: &str = "shop.example";

/// A running nginx that passes requests on.
struct Nginx {
    process: Child,
    directory: TempDir,
    port: u16,
    scheme: &'static str,
}

impl Nginx {
    /// Starts nginx with HTTP/2 over TLS (`https`) or with HTTP/1.1. Without nginx, prints that and returns `None`.
    async fn start(scheme: &'static str, to: &Sink, settings: &str) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let (port, path) = (free_port(), directory.path().display().to_string());
        let [certificate, key] =
            ["receiver.pem", "receiver.key"].map(|name| file(name).display().to_string());
        let tls = match scheme {
            "https" => format!("ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key}"),
            _ => String::new(),
        };
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {path}/{name};"));
        let configuration = format!(
            "daemon off; pid {path}/pid; error_log {path}/errors; worker_processes 1;
            events {{ worker_connections 1024; }}
            http {{ access_log off; {} upstream receiver {{ server {}; keepalive 64; keepalive_requests 1000000; }}
              server {{ listen 127.0.0.1:{port} {tls}; {settings}
                location / {{ proxy_pass http://receiver; proxy_http_version 1.1; proxy_set_header connection \"\"; }} }} }}",
            temporary.concat(),
            to.url("").trim_start_matches("http://").trim_end_matches('/'),
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, configuration).expect("a file");
        let mut command = Command::new("nginx");
        command
            .arg("-p")
            .arg(directory.path())
            .arg("-c")
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process =
            command.env("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin").spawn();
        let Ok(process) = process else {
            super::show_left_out("there is no nginx on this machine");
            return None;
        };
        let nginx = Self { process, directory, port, scheme };
        eventually(SOON, "nginx listens", async || {
            tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map(drop)
        })
        .await;
        Some(nginx)
    }

    fn url(&self) -> String {
        format!("{}://{NAME}:{}/hook", self.scheme, self.port)
    }

    /// Reloads the settings: new workers accept new connections, and the old workers end theirs.
    fn reload(&self) {
        signal(&self.directory.path().join("pid"), nix::sys::signal::Signal::SIGHUP);
    }
}

fn signal(file: &Path, signal: nix::sys::signal::Signal) {
    let Ok(pid) = std::fs::read_to_string(file) else { return };
    let pid = nix::unistd::Pid::from_raw(pid.trim().parse().expect("a pid"));
    // The process may have ended.
    let _ = nix::sys::signal::kill(pid, signal);
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The workers end with the main process.
        signal(&self.directory.path().join("pid"), nix::sys::signal::Signal::SIGTERM);
        let _ = self.process.wait();
    }
}

fn options(names: &NameServer) -> StackOptions {
    names.knows(NAME, &[Ipv4Addr::LOCALHOST.into()]);
    let options = Stack::options().env("RINGBACK_NAME_SERVERS", &names.address().to_string());
    options.env("RINGBACK_CA_FILE", file("authority.pem").to_str().expect("a path"))
}

/// Settings by which a connection ends after 50 requests, or after nginx's default of 1,000 for many callbacks.
fn settings(callbacks: usize) -> &'static str {
    if callbacks > 10_000 { "" } else { "keepalive_requests 50;" }
}

#[tokio::test]
async fn no_callback_to_a_healthy_receiver_behind_nginx_has_failed() {
    let callbacks = variable::<usize>("RINGBACK_TEST_CALLBACKS").unwrap_or(3_000);
    let (names, sink) = (NameServer::start(60), Sink::counting().await);
    let stack = options(&names).start().await;
    let mut done = 0;
    for scheme in ["http", "https"] {
        let Some(nginx) = Nginx::start(scheme, &sink, settings(callbacks)).await else { return };
        for part in 0..10 {
            let jobs: Vec<Value> = (0..callbacks / 20)
                .map(|n| {
                    let id = format!("{scheme}-{part}-{n}");
                    json!({"topic": TOPIC, "id": id, "url": nginx.url(), "body": "x", "retry": {"preset": "none"}})
                })
                .collect();
            assert_eq!(stack.batch(&jobs).await.1["accepted"], jobs.len());
            done += jobs.len() as u64;
            if part % 3 == 1 {
                nginx.reload();
            }
        }
        let ended = async || match (stack.count_in("done").await, stack.count_in("dead").await) {
            (all, 0) if all == done => Ok(()),
            seen => Err(format!("{seen:?} of {done}")),
        };
        eventually(SOON.max(Duration::from_millis(callbacks as u64 * 5)), "all are done", ended).await;
    }
}

#[tokio::test]
async fn a_connection_that_serves_two_streams_is_no_failure_of_thirty() {
    let (names, sink) = (NameServer::start(60), Sink::counting().await);
    let stack = options(&names).start().await;
    let Some(nginx) = Nginx::start("https", &sink, "keepalive_requests 2;").await else { return };
    let jobs: Vec<Value> = (0..30)
        .map(|n| json!({"topic": TOPIC, "id": format!("{n}"), "url": nginx.url(), "body": "x", "retry": {"preset": "none"}}))
        .collect();
    assert_eq!(stack.batch(&jobs).await.1["accepted"], 30);
    stack.wait_count("done", 30, SOON).await;
}

#[tokio::test]
async fn a_context_key_with_an_underscore_passes_nginx() {
    let (names, sink) = (NameServer::start(60), Sink::start().await);
    let stack = options(&names).start().await;
    let Some(nginx) = Nginx::start("http", &sink, "").await else { return };
    let context = json!({"tenant_id": "a7", "Order.No": "17", "plain": "c"});
    let mut job =
        json!({"topic": TOPIC, "id": "context", "url": nginx.url(), "body": "x", "context": context});
    stack.accept(&job).await;
    let arrival = sink.wait_for_job("context", 1, SOON).await.remove(0);
    for (name, value) in [("tenant-id", "a7"), ("order-no", "17"), ("plain", "c")] {
        assert_eq!(arrival.header(&format!("ringback-context-{name}")), Some(value));
    }
    job["id"] = json!("both");
    job["context"] = json!({"a_b": "1", "a-b": "2"});
    let (status, problem) = stack.submit(&job).await;
    assert_eq!(status, 422);
    assert!(problem.to_string().contains("ringback-context-a-b"), "{problem}");
}
