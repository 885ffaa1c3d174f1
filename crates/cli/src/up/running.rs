//! Checks, before `ringback up` opens anything, whether another Ringback listens at its addresses, and if so says what
//! to do.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::config::Config;

/// How long the other side may take to accept, to read and to answer.
const WITHIN: Duration = Duration::from_millis(500);
/// How much of an answer is read: the description of the API is the longest.
const READ: u64 = 2 * 1024 * 1024;

/// Fails, with advice, if a Ringback answers at the address of the API or of the admin port. If another program has
/// them, listening fails later.
pub(crate) fn refuse_second(config: &Config) -> Result<(), String> {
    let found = [
        ("API", config.api.listen, "/openapi.json", r#""title":"Ringback""#),
        ("admin port", config.admin, "/readyz", r#""checks":{"#),
    ]
    .into_iter()
    .find(|(_, address, path, mark)| has_answer(*address, path, mark));
    let Some((what, address, _, _)) = found else { return Ok(()) };
    Err(format!(
        "ringback up: another Ringback runs on this machine: it has the {what} address {address}\n\n\
         Use that one: `ringback listen` receives its callbacks, if it was started to allow them to this machine. Or end it \
         first. Or start this one beside it, with addresses and a store of its own:\n\n  \
         ringback up --api-listen 127.0.0.1:7511 --admin-listen 127.0.0.1:7512 --store embedded:./ringback-data-2"
    ))
}

/// Whether the answer of plain HTTP at an address and path contains a text; false without an answer in time.
fn has_answer(address: SocketAddr, path: &str, mark: &str) -> bool {
    // With port 0 the system chooses one that is free.
    address.port() != 0 && answer(address, path).is_ok_and(|answer| answer.contains(mark))
}

fn answer(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, WITHIN)?;
    stream.set_read_timeout(Some(WITHIN))?;
    stream.set_write_timeout(Some(WITHIN))?;
    let host = if address.ip().is_unspecified() { "localhost".to_owned() } else { address.to_string() };
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
    let mut read = Vec::new();
    // What arrived before an error counts.
    stream.take(READ).read_to_end(&mut read).ok();
    Ok(String::from_utf8_lossy(&read).into_owned())
}
