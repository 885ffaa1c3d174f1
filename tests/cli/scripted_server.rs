//! A server that handles imports as the API documents them, keeps the jobs in memory, and fails as a script says.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use ringback_core::clock::Timestamp;
use ringback_core::job::{ImportJob, TenantScope};
use ringback_wire::{Defaults, ImportProblem, ImportResponse, Problem, parse_import};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How one request fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// 503 before anything is imported.
    Unavailable,
    /// Everything is imported, and the connection closed without an answer.
    NoResponse,
    /// Every third line gets a 503 of its own.
    SomeLines,
}

/// A running server; it ends when this is dropped.
pub(crate) struct Importer {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct State {
    jobs: HashMap<String, ImportJob>,
    faults: VecDeque<Fault>,
    /// Closes the connection on every request with this text in it.
    chokes_on: Option<&'static str>,
    requests: Vec<usize>,
}

impl Importer {
    pub(crate) async fn start(faults: &[Fault]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let state = State { faults: faults.iter().copied().collect(), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&state)));
        Self { url, state, _tasks: tasks }
    }

    /// Closes the connection of each request that contains this text, until the text is `None`.
    pub(crate) fn chokes_on(&self, text: Option<&'static str>) {
        self.state.lock().expect("no test failed while it held this").chokes_on = text;
    }

    /// The imported jobs, by `topic/id`.
    pub(crate) fn jobs(&self) -> HashMap<String, ImportJob> {
        self.state.lock().expect("no test failed while it held this").jobs.clone()
    }

    pub(crate) fn requests(&self) -> Vec<usize> {
        self.state.lock().expect("no test failed while it held this").requests.clone()
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(converse(stream, Arc::clone(&state)));
    }
}

async fn converse(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut input = Vec::new();
    while let Some(body) = request(&mut stream, &mut input).await {
        let Some(answer) = state.lock().expect("no test failed while it held this").answer(&body) else {
            return;
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads the next request and returns its body; `None` when the connection has ended. Panics unless it is an import.
async fn request(stream: &mut TcpStream, input: &mut Vec<u8>) -> Option<Vec<u8>> {
    let head = loop {
        if let Some(end) = input.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let rest = input.split_off(end + 4);
            break String::from_utf8(std::mem::replace(input, rest)).expect("a head is text");
        }
        if stream.read_buf(input).await.ok()? == 0 {
            return None;
        }
    };
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("post /v1/import http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-ndjson"), "{head}");
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let length: usize = length.expect("a length").parse().expect("a number");
    while input.len() < length {
        if stream.read_buf(input).await.ok()? == 0 {
            return None;
        }
    }
    let rest = input.split_off(length);
    Some(std::mem::replace(input, rest))
}

impl State {
    /// The answer to an import, by the next fault; `None` closes the connection. Records the number of lines. Panics if
    /// there are more lines or bytes than the command line may send at once.
    fn answer(&mut self, body: &[u8]) -> Option<String> {
        let lines: Vec<_> = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        assert!(lines.len() <= 2_000 && body.len() < 6 * 1024 * 1024, "{} lines", lines.len());
        self.requests.push(lines.len());
        let contains = |text: &str| body.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        if self.chokes_on.is_some_and(contains) {
            return None;
        }
        let fault = self.faults.pop_front();
        if let Some(Fault::Unavailable) = fault {
            let problem = Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "the store is away");
            let body = serde_json::to_string(&problem).expect("plain data");
            return Some(response("503 Service Unavailable\r\nretry-after: 0", &body));
        }
        let mut answer = ImportResponse::default();
        for (index, line) in lines.iter().enumerate() {
            let passing = matches!(fault, Some(Fault::SomeLines)) && index % 3 == 0;
            if let Err(problem) = self.line(line, passing, &mut answer) {
                answer.refused += 1;
                answer.problems.push(ImportProblem { line: index + 1, status: problem.status, problem });
            }
        }
        let body = serde_json::to_string(&answer).expect("plain data");
        (!matches!(fault, Some(Fault::NoResponse))).then(|| response("200 OK", &body))
    }

    fn line(&mut self, line: &[u8], passing: bool, answer: &mut ImportResponse) -> Result<(), Problem> {
        if passing {
            return Err(Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "not this one"));
        }
        let now = Timestamp::from_millis(1_795_000_000_000);
        let make_id = &mut |_: &_| panic!("a line without an id was sent: {}", String::from_utf8_lossy(line));
        let make_token = &mut || panic!("an import changes no job");
        let import = parse_import(
            line,
            Defaults { now, make_id, make_token, trace: None, tenant: None },
            &TenantScope::All,
        )?;
        match self.jobs.get(&import.job.key.to_string()) {
            None => {
                answer.created += 1;
                self.jobs.insert(import.job.key.to_string(), import);
            }
            Some(known) if known.job.content == import.job.content => answer.repeated += 1,
            Some(_) => {
                return Err(Problem::new(http::StatusCode::CONFLICT, "another job has this topic and id"));
            }
        }
        Ok(())
    }
}

fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
