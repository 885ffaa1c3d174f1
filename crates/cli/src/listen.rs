//! `ringback listen` and the receiver of `ringback up --demo`: accepts every request, prints it, and answers it as the
//! flags say. It is for trials and tests, and stores nothing.

mod answers;
mod print;
mod receive;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use http::{HeaderName, HeaderValue, StatusCode};
use ringback_service::http_server::{self, Connections};
use ringback_service::{Shutdown, Signals};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::answers::Answers;
use self::print::{Printer, Style};
use self::receive::{MAX_CONNECTIONS, receiver};
use crate::args::{Format, values};
use crate::output::{Times, note};

/// The port of `ringback listen`, and the first choice of `ringback up --demo`.
pub(crate) const PORT: u16 = 8080;
/// The longest delay of an answer. No attempt of Ringback takes longer than ten minutes.
const MAX_DELAY: Duration = Duration::from_secs(3600);
/// The most statuses of a sequence.
const MAX_STATUSES: usize = 1000;
/// How long the last requests may take to be printed at the end.
const LAST_PRINTS: Duration = Duration::from_secs(1);
/// Headers that the server sets itself.
const OWN_HEADERS: [&str; 5] = ["content-length", "transfer-encoding", "connection", "upgrade", "trailer"];

const EXAMPLES: &str = "\
Examples:
  ringback listen
  ringback listen --status 500,500,200     # each job fails twice
  ringback listen --status 503 --header retry-after:30
  ringback listen --listen 127.0.0.1:9000 --delay 2s --body success
  ringback listen --json | jq .headers

In another terminal, while Ringback runs:
  ringback submit --topic demo --url http://127.0.0.1:8080/hook --body '{\"hello\":\"world\"}'

Every method and path is taken. Bodies of up to 512 KiB are read; larger ones are answered with 413. Control characters \
are printed escaped.";

/// Where to listen and what to answer.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ListenArgs {
    /// Address to listen on; a port alone is on 127.0.0.1
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = values::listen)]
    listen: SocketAddr,
    /// Status to answer with, 200 to 599; several, such as 500,500,200, are the answers to the first, second and third
    /// request of each job (by its webhook-id), and the last one repeats
    #[arg(long, value_name = "STATUS", default_value = "200", value_delimiter = ',', value_parser = status)]
    status: Vec<StatusCode>,
    /// How long to wait before each answer, at most 1h
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = delay)]
    delay: Duration,
    /// Header of the answers; may be repeated
    #[arg(long, value_name = "NAME:VALUE", value_parser = response_header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Body of the answers
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    body: Option<String>,
}

fn status(text: &str) -> Result<StatusCode, String> {
    let code = text.trim().parse::<u16>().ok().filter(|code| (200..600).contains(code));
    code.and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or_else(|| "a status is 200 to 599; write several as 500,500,200".to_owned())
}

fn delay(text: &str) -> Result<Duration, String> {
    let delay = values::duration(text)?;
    if delay > MAX_DELAY { Err("the longest delay is 1h".to_owned()) } else { Ok(delay) }
}

fn response_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let values::Pair(name, value) = values::header(text)?;
    let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is not the name of a header"))?;
    let value = value.parse().map_err(|_| format!("{value:?} is not the value of a header"))?;
    if OWN_HEADERS.contains(&name.as_str()) {
        return Err(format!("{name} is set by the server itself"));
    }
    Ok((name, value))
}

/// Runs until Ctrl-C, SIGTERM, the end of its terminal, or until standard output is closed.
pub(crate) fn main(args: ListenArgs, format: Format, times: Times) -> anyhow::Result<ExitCode> {
    if args.status.len() > MAX_STATUSES {
        return Err(values::wrong(format!("--status takes at most {MAX_STATUSES} statuses")).into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(run(args, format, times));
    // A thread may still write to a standard output that nobody reads.
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS)
}

async fn run(args: ListenArgs, format: Format, times: Times) -> anyhow::Result<()> {
    let listener = bind(args.listen).await?;
    let mut signals = Signals::listen()?;
    let (printer, printing) = Printer::start(Style::of_stdout(format, times));
    note(&format!("listening on http://{}; press Ctrl-C to stop", listener.local_addr()?));
    let answers = Answers::new(args.status, args.delay, args.header, args.body);
    tokio::select! {
        () = serve(listener, answers, printer.clone()) => {}
        () = printer.closed() => {}
        _ = signals.stop() => {}
    }
    drop(printer);
    match timeout(LAST_PRINTS, printing).await {
        Ok(Ok(Err(error))) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("standard output"))
        }
        _ => Ok(()),
    }
}

/// Serves requests until this future is dropped.
async fn serve(listener: TcpListener, answers: Answers, printer: Printer) {
    let connections = Connections::at_most(MAX_CONNECTIONS);
    let app = receiver(answers, printer, connections.clone());
    http_server::serve(listener, app, connections, None, Shutdown::new(Duration::ZERO)).await;
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.with_context(|| format!("cannot listen on {address}; choose another address with --listen"))
}

/// A receiver inside another process. It answers 200 and ends when it is dropped.
pub(crate) struct Demo {
    pub(crate) address: SocketAddr,
    _server: JoinSet<()>,
}

impl Demo {
    /// Listens on a port of 127.0.0.1; without a port on [`PORT`], or another one if that is in use.
    ///
    /// # Errors
    /// When the port cannot be used.
    pub(crate) async fn start(port: Option<u16>, format: Format, times: Times) -> anyhow::Result<Self> {
        let loopback = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match port {
            Some(port) => loopback(port).await.with_context(|| {
                format!("cannot listen on port {port}; choose another one with --demo=PORT")
            })?,
            None => match loopback(PORT).await {
                Ok(listener) => listener,
                Err(_) => loopback(0).await.context("cannot listen on any port of 127.0.0.1")?,
            },
        };
        let address = listener.local_addr()?;
        let (printer, _) = Printer::start(Style::of_stdout(format, times));
        let answers = Answers::new(vec![StatusCode::OK], Duration::ZERO, Vec::new(), None);
        let mut server = JoinSet::new();
        server.spawn(serve(listener, answers, printer));
        Ok(Self { address, _server: server })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_no_answer_can_have_are_refused() {
        for good in ["200", " 599", "404"] {
            assert!(status(good).is_ok(), "{good}");
        }
        for bad in ["199", "600", "ok", "", "-1", "2e2"] {
            assert!(status(bad).unwrap_err().contains("200 to 599"), "{bad}");
        }
        assert!(response_header("retry-after: 30").is_ok());
        for bad in ["retry-after", "a b:c", "x:a\nb", "content-length:5", "Transfer-Encoding:chunked"] {
            assert!(response_header(bad).is_err(), "{bad}");
        }
        assert_eq!(delay("250ms"), Ok(Duration::from_millis(250)));
        assert!(delay("2h").is_err());
        assert_eq!(values::listen("9000"), Ok(SocketAddr::from(([127, 0, 0, 1], 9000))));
        assert!(values::listen("localhost:9000").unwrap_err().contains("127.0.0.1:8080"));
    }
}
