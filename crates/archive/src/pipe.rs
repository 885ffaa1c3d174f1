//! A sink that is another process: requests go to its standard input, answers come from its standard output. A message is
//! its length in 4 bytes, and postcard.

use std::process::Stdio;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::row::EndRow;
use crate::sink::{Sink, SinkError, Written};

/// The longest message, in bytes.
const MAX_MESSAGE: u32 = 256 * 1024 * 1024;
/// How long an answer may take. The process bounds its own work by less.
const ANSWER: Duration = Duration::from_secs(60);

/// What the process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Request {
    Prepare,
    Write(Vec<EndRow>),
    Maintain,
}

/// The response to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Response {
    Prepared(String),
    Written(Written),
    Maintained,
    Failed(SinkError),
}

/// Serves a sink to the process at the other end, until that closes the pipe.
///
/// # Errors
/// If the pipe breaks, or a message cannot be read.
pub async fn serve(
    mut sink: impl Sink,
    mut requests: impl AsyncRead + Unpin,
    mut answers: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    while let Some(request) = receive(&mut requests).await? {
        let answer = match request {
            Request::Prepare => sink.prepare().await.map(Response::Prepared),
            Request::Write(rows) => sink.write(&rows).await.map(Response::Written),
            Request::Maintain => sink.maintain().await.map(|()| Response::Maintained),
        };
        send(&mut answers, &answer.unwrap_or_else(Response::Failed)).await?;
    }
    Ok(())
}

/// A sink in a process that is started when it is needed, and again when it has ended.
pub struct ChildSink {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    running: Option<(Child, ChildStdin, ChildStdout)>,
}

impl ChildSink {
    /// A sink in the process of a command.
    pub fn new(command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self { command: Box::new(command), running: None }
    }

    async fn ask(&mut self, request: &Request) -> Result<Response, SinkError> {
        let answer = match timeout(ANSWER, self.exchange(request)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(SinkError(format!("the archiver did not answer within {ANSWER:?}"))),
        };
        // After an error it is not known what it does, so it is ended and started again.
        if answer.is_err()
            && let Some((mut child, ..)) = self.running.take()
        {
            child.kill().await.ok();
        }
        match answer? {
            Response::Failed(error) => Err(error),
            answer => Ok(answer),
        }
    }

    async fn exchange(&mut self, request: &Request) -> Result<Response, SinkError> {
        if self.running.is_none() {
            self.running = Some(self.start()?);
        }
        let Some((_, stdin, stdout)) = &mut self.running else { return Err(ended()) };
        send(stdin, request).await.map_err(|_| ended())?;
        receive(stdout).await.map_err(|_| ended())?.ok_or_else(ended)
    }

    fn start(&self) -> Result<(Child, ChildStdin, ChildStdout), SinkError> {
        let mut command = (self.command)();
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            SinkError(format!(
                "{program} cannot be started: {error}; it is built with `cargo build --release --package ringback-archiver` and has to be beside `ringback`, or in PATH"
            ))
        })?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok((child, stdin, stdout)),
            _ => Err(ended()),
        }
    }
}

fn ended() -> SinkError {
    SinkError("the archiver has ended; its last lines in the log say why".to_owned())
}

fn unexpected() -> SinkError {
    SinkError("the archiver is of another version".to_owned())
}

impl Sink for ChildSink {
    async fn prepare(&mut self) -> Result<String, SinkError> {
        match self.ask(&Request::Prepare).await? {
            Response::Prepared(found) => Ok(found),
            Response::Written(_) | Response::Maintained | Response::Failed(_) => Err(unexpected()),
        }
    }

    async fn write(&mut self, rows: &[EndRow]) -> Result<Written, SinkError> {
        match self.ask(&Request::Write(rows.to_vec())).await? {
            Response::Written(written) => Ok(written),
            Response::Prepared(_) | Response::Maintained | Response::Failed(_) => Err(unexpected()),
        }
    }

    async fn maintain(&mut self) -> Result<(), SinkError> {
        match self.ask(&Request::Maintain).await? {
            Response::Maintained => Ok(()),
            Response::Prepared(_) | Response::Written(_) | Response::Failed(_) => Err(unexpected()),
        }
    }
}

async fn send(pipe: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> std::io::Result<()> {
    let packed = postcard::to_stdvec(message).map_err(std::io::Error::other)?;
    let length = u32::try_from(packed.len()).ok().filter(|length| *length <= MAX_MESSAGE);
    let length = length.ok_or_else(|| std::io::Error::other("a message is too long"))?;
    pipe.write_all(&length.to_be_bytes()).await?;
    pipe.write_all(&packed).await?;
    pipe.flush().await
}

/// The next message; `None` if the pipe was closed before it.
async fn receive<T: DeserializeOwned>(pipe: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<T>> {
    let mut length = [0; 4];
    match pipe.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_be_bytes(length);
    if length > MAX_MESSAGE {
        return Err(std::io::Error::other("a message is too long"));
    }
    let mut packed = vec![0; length as usize];
    pipe.read_exact(&mut packed).await?;
    postcard::from_bytes(&packed).map(Some).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink that counts what it is given, and fails when it is given nothing.
    struct Counting(u64);

    impl Sink for Counting {
        async fn prepare(&mut self) -> Result<String, SinkError> {
            Ok("a test".to_owned())
        }

        async fn write(&mut self, rows: &[EndRow]) -> Result<Written, SinkError> {
            if rows.is_empty() {
                return Err(SinkError("nothing".to_owned()));
            }
            self.0 += rows.len() as u64;
            Ok(Written { new: self.0, refused: 0 })
        }

        async fn maintain(&mut self) -> Result<(), SinkError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn requests_are_answered_in_order_until_the_pipe_is_closed() {
        let (near, far) = tokio::io::duplex(64);
        let (requests, answers) = tokio::io::split(far);
        let mut served = tokio::task::JoinSet::new();
        served.spawn(serve(Counting(0), requests, answers));
        let (mut from, mut to) = tokio::io::split(near);
        let mut texts = Vec::new();
        for request in [Request::Prepare, Request::Write(Vec::new()), Request::Maintain] {
            send(&mut to, &request).await.unwrap();
            let answer: Response = receive(&mut from).await.unwrap().unwrap();
            texts.push(format!("{answer:?}"));
        }
        assert_eq!(texts, [r#"Prepared("a test")"#, r#"Failed(SinkError("nothing"))"#, "Maintained"]);
        drop((from, to));
        served.join_next().await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_or_damaged_ends_the_service() {
        for wrong in [&[255, 255, 255, 255][..], &[0, 0, 0, 1, 9]] {
            assert!(serve(Counting(0), wrong, tokio::io::sink()).await.is_err());
        }
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let mut sink = ChildSink::new(|| Command::new("/nowhere/ringback-archiver"));
        let error = sink.prepare().await.unwrap_err().to_string();
        assert!(error.contains("/nowhere/ringback-archiver cannot be started"), "{error}");
    }
}
