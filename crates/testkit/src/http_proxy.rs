//! A proxy for HTTP/1.1 that changes requests and answers on their way, as a faulty process would. It opens one
//! connection to the server for each connection of a client.

mod message;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub use self::message::HttpMessage;
use self::message::Peer;

/// What a proxy changes.
#[derive(Clone, Copy, Debug)]
pub struct HttpChanges {
    pub request: fn(&mut HttpMessage),
    /// Requests get this status as their answer, and are not passed on.
    pub instead: Option<u16>,
    /// Changes the answer to a request; `None` stands for a connection that broke before there was one.
    pub answer: fn(&HttpMessage, &mut Option<HttpMessage>),
    /// How long an answer may take. After it the connection counts as broken.
    pub timeout: Duration,
    /// Whether bytes behind an answer are taken for the answer to the next request. Else they are passed on.
    pub keeps_extra_bytes: bool,
}

impl HttpChanges {
    /// Everything is passed on as it is.
    pub const NONE: Self = Self {
        request: |_| {},
        instead: None,
        answer: |_, _| {},
        timeout: Duration::from_secs(60),
        keeps_extra_bytes: false,
    };
}

/// A running proxy. Dropping it closes all connections.
pub struct HttpProxy {
    address: SocketAddr,
    // Ends the listener and with it every connection.
    _listener: JoinSet<()>,
}

impl HttpProxy {
    /// Starts a proxy to a server, which is named by its URL without a path.
    pub async fn start(server: &str, changes: HttpChanges) -> Self {
        let server = server.trim_start_matches("http://").parse().expect("an address");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server, changes));
        Self { address, _listener: tasks }
    }

    /// `http://127.0.0.1:<port><path>`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, changes: HttpChanges) {
    let mut connections = JoinSet::new();
    loop {
        if let Ok((client, _)) = listener.accept().await {
            connections.spawn(async move {
                // Either side may end the connection.
                let _ = converse(client, server, &changes).await;
            });
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Passes on the requests of a client one after the other, each with its answer, and makes the changes. Returns when a
/// side closes or no answer comes in time.
async fn converse(client: TcpStream, server: SocketAddr, changes: &HttpChanges) -> io::Result<()> {
    let (mut client, mut server) = (Peer::new(client)?, Peer::new(TcpStream::connect(server).await?)?);
    loop {
        let mut request = client.read().await?;
        (changes.request)(&mut request);
        if let Some(status) = changes.instead {
            client.write(&HttpMessage::answer(status), &[]).await?;
            continue;
        }
        let answered = async {
            server.write(&request, &[]).await?;
            server.read().await
        };
        let mut answer = tokio::select! {
            // A request whose client has gone is passed on all the same.
            biased;
            answer = timeout(changes.timeout, answered) => answer.ok().and_then(Result::ok),
            // The client has gone.
            _ = client.read_more() => return Ok(()),
        };
        let is_broken = answer.is_none();
        (changes.answer)(&request, &mut answer);
        let Some(answer) = answer else { return Ok(()) };
        let extra = if changes.keeps_extra_bytes { Vec::new() } else { server.take_rest() };
        client.write(&answer, &extra).await?;
        if is_broken {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::network::http_client;
    use crate::sink::{Answer, Sink};

    /// Posts a body through a proxy. Returns the status of the answer; `None` if the connection broke.
    async fn post(proxy: &HttpProxy) -> Option<u16> {
        let request = http_client().request(Method::POST, proxy.url("/hook")).body("{ }");
        Some(request.send().await.ok()?.status().as_u16())
    }

    #[tokio::test]
    async fn a_proxy_without_changes_passes_everything_on() {
        let sink = Sink::start().await;
        let proxy = HttpProxy::start(&sink.url(""), HttpChanges::NONE).await;
        assert_eq!(post(&proxy).await, Some(200));
        sink.answer(Answer::close());
        assert_eq!(post(&proxy).await, None);
        assert!(sink.arrivals().iter().all(|arrival| arrival.path == "/hook" && arrival.body == "{ }"));
    }

    #[tokio::test]
    async fn a_proxy_changes_requests_and_answers() {
        let sink = Sink::start().await;
        let changes = HttpChanges {
            request: |request| request.set("x-changed", "yes"),
            answer: |_, answer| *answer = Some(HttpMessage::answer(if answer.is_some() { 418 } else { 202 })),
            ..HttpChanges::NONE
        };
        let proxy = HttpProxy::start(&sink.url(""), changes).await;
        assert_eq!(post(&proxy).await, Some(418));
        assert_eq!(sink.arrivals()[0].header("x-changed"), Some("yes"));
        sink.answer(Answer::close());
        assert_eq!(post(&proxy).await, Some(202));
    }
}
