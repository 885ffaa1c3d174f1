//! A sink that is a child process ([`ChildSink`]), and the loop by which that process serves its own sink.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::message::{receive, send};
use super::program::{ChildProgram, ended, unexpected};
use crate::audit_entry::AuditEntryRow;
use crate::ended_job_row::EndedJobRow;
use crate::sink::{Sink, SinkError, WriteResult};

/// How long an answer may take. The process bounds its own work by less.
const ANSWER: Duration = Duration::from_secs(60);

/// A request to the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Request {
    Prepare,
    Write(Vec<EndedJobRow>),
    WriteAuditLog(Vec<AuditEntryRow>),
    Maintain,
}

/// The response to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Response {
    Prepared(String),
    Written(WriteResult),
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
            Request::WriteAuditLog(rows) => sink.write_audit_log(&rows).await.map(Response::Written),
            Request::Maintain => sink.maintain().await.map(|()| Response::Maintained),
        };
        send(&mut answers, &answer.unwrap_or_else(Response::Failed)).await?;
    }
    Ok(())
}

/// A sink in a process that is started when it is needed, and again when it has ended.
pub struct ChildSink {
    program: ChildProgram,
    running: Option<(Child, ChildStdin, ChildStdout)>,
}

impl ChildSink {
    pub const fn new(program: ChildProgram) -> Self {
        Self { program, running: None }
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

    async fn ask_to_write(&mut self, request: &Request) -> Result<WriteResult, SinkError> {
        match self.ask(request).await? {
            Response::Written(written) => Ok(written),
            Response::Prepared(_) | Response::Maintained | Response::Failed(_) => Err(unexpected()),
        }
    }

    async fn exchange(&mut self, request: &Request) -> Result<Response, SinkError> {
        if self.running.is_none() {
            self.running = Some(self.program.start()?);
        }
        let Some((_, stdin, stdout)) = &mut self.running else { return Err(ended()) };
        send(stdin, request).await.map_err(|_| ended())?;
        receive(stdout).await.map_err(|_| ended())?.ok_or_else(ended)
    }
}

impl Sink for ChildSink {
    async fn prepare(&mut self) -> Result<String, SinkError> {
        match self.ask(&Request::Prepare).await? {
            Response::Prepared(found) => Ok(found),
            Response::Written(_) | Response::Maintained | Response::Failed(_) => Err(unexpected()),
        }
    }

    async fn write(&mut self, rows: &[EndedJobRow]) -> Result<WriteResult, SinkError> {
        self.ask_to_write(&Request::Write(rows.to_vec())).await
    }

    async fn write_audit_log(&mut self, rows: &[AuditEntryRow]) -> Result<WriteResult, SinkError> {
        self.ask_to_write(&Request::WriteAuditLog(rows.to_vec())).await
    }

    async fn maintain(&mut self) -> Result<(), SinkError> {
        match self.ask(&Request::Maintain).await? {
            Response::Maintained => Ok(()),
            Response::Prepared(_) | Response::Written(_) | Response::Failed(_) => Err(unexpected()),
        }
    }
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

        async fn write(&mut self, rows: &[EndedJobRow]) -> Result<WriteResult, SinkError> {
            if rows.is_empty() {
                return Err(SinkError("nothing".to_owned()));
            }
            self.0 += rows.len() as u64;
            Ok(WriteResult { new: self.0, refused: 0 })
        }

        async fn write_audit_log(&mut self, rows: &[AuditEntryRow]) -> Result<WriteResult, SinkError> {
            Ok(WriteResult { new: rows.len() as u64, refused: 0 })
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
        for request in [
            Request::Prepare,
            Request::Write(Vec::new()),
            Request::WriteAuditLog(Vec::new()),
            Request::Maintain,
        ] {
            send(&mut to, &request).await.unwrap();
            let answer: Response = receive(&mut from).await.unwrap().unwrap();
            texts.push(format!("{answer:?}"));
        }
        let written = "Written(WriteResult { new: 0, refused: 0 })";
        assert_eq!(
            texts,
            [r#"Prepared("a test")"#, r#"Failed(SinkError("nothing"))"#, written, "Maintained"]
        );
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
        let mut sink = ChildSink::new(ChildProgram::at("/nowhere/ringback-archiver"));
        let error = sink.prepare().await.unwrap_err().to_string();
        assert!(error.contains("/nowhere/ringback-archiver cannot be started"), "{error}");
    }
}
