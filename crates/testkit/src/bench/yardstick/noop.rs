//! For single submits: an axum handler that reads a POST and answers 201, in a process of its own.

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

use crate::child::Child;
use crate::eventually::eventually;
use crate::ports::free_port;

/// The first word of the command line that makes this program the handler.
pub(in crate::bench) const WORD: &str = "serve-noop";

/// The running handler.
pub(in crate::bench) struct Noop {
    child: Child,
    address: SocketAddr,
    // After the child, which writes its log there.
    _dir: TempDir,
}

impl Noop {
    /// Starts it.
    ///
    /// # Panics
    /// When it does not.
    pub(in crate::bench) async fn start() -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let dir = tempfile::tempdir().expect("a temp directory");
        let exe = std::env::current_exe().expect("this program knows its path");
        let mut command = Command::new(exe);
        command.args([WORD, &address.port().to_string()]);
        let child = Child::spawn(WORD, &mut command, &dir.path().join("log"));
        eventually(Duration::from_secs(10), "the handler listens", async || {
            TcpStream::connect(address).await.map_err(|error| error.to_string())
        })
        .await;
        Self { child, address, _dir: dir }
    }

    /// Where it listens.
    pub(in crate::bench) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub(in crate::bench) fn pid(&self) -> u32 {
        self.child.pid()
    }
}

/// Is the handler, for ever.
pub(in crate::bench) async fn serve(port: u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("the port is free");
    let listener = listener.tap_io(|stream| {
        // Without it everything works, only later.
        let _ = stream.set_nodelay(true);
    });
    let routes = Router::new().route("/v1/jobs", post(noop));
    axum::serve(listener, routes).await.expect("it serves for ever");
}

async fn noop(_body: Bytes) -> (StatusCode, &'static str) {
    (StatusCode::CREATED, "{}")
}
