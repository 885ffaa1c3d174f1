//! The yardstick of single submits: an axum handler that reads a POST and answers 201, in a process of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

use ringback_testkit::{Child, eventually, free_port};

/// The first argument that makes this program the handler.
pub(crate) const VERB: &str = "serve-noop";

/// The running handler.
pub(crate) struct Noop {
    child: Child,
    address: SocketAddr,
    // Dropped after the child, which writes its log there.
    _dir: TempDir,
}

impl Noop {
    pub(crate) async fn start() -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let dir = tempfile::tempdir().expect("a temp directory");
        let exe = std::env::current_exe().expect("this program knows its path");
        let mut command = Command::new(exe);
        command.args([VERB, &address.port().to_string()]);
        let child = Child::spawn(VERB, &mut command, &dir.path().join("log"));
        eventually(Duration::from_secs(10), "the handler listens", async || {
            TcpStream::connect(address).await.map_err(|error| error.to_string())
        })
        .await;
        Self { child, address, _dir: dir }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process of the handler.
    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }
}

/// Serves the handler until the process is killed.
pub(crate) async fn serve(port: u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("the port is free");
    let listener = listener.tap_io(|stream| {
        // Responses are only later without it.
        let _ = stream.set_nodelay(true);
    });
    let routes = Router::new().route("/v1/jobs", post(noop));
    axum::serve(listener, routes).await.expect("it serves until it is killed");
}

async fn noop(_body: Bytes) -> (StatusCode, &'static str) {
    (StatusCode::CREATED, "{}")
}
