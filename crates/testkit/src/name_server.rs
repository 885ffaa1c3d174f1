//! A name server on 127.0.0.1 (RFC 1035, over UDP): it knows some names, answers late or not at all for others or for
//! one family of addresses, and counts how often it was asked for each.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use crate::preload::LookUp;

/// Where the question begins, and how long type and class behind its name are.
const HEADER: usize = 12;
const TYPE_AND_CLASS: usize = 4;
/// The types of records with addresses.
const A: u16 = 1;
const AAAA: u16 = 28;
/// The type of a start of authority.
const SOA: u16 = 6;
/// An answer to a recursive query: without an error, or that there is no such name.
const FOUND: [u8; 2] = [0x81, 0x80];
const NO_SUCH_NAME: [u8; 2] = [0x81, 0x83];

/// A running name server. Dropping it ends it.
pub struct NameServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// How long its answers may be kept, in seconds.
    ttl: u32,
    names: Mutex<HashMap<String, Name>>,
    asked: Mutex<HashMap<String, usize>>,
}

/// The outcome of look-ups of a name, and its addresses.
#[derive(Clone)]
struct Name {
    look_up: LookUp,
    addresses: Vec<IpAddr>,
    /// For which type of records it fails instead, and how.
    failing: Option<(u16, Failing)>,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    Four,
    /// IPv6.
    Six,
}

/// How questions for one family of addresses fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// No answer.
    Silent,
    /// An answer with this code of an error, such as 2 for SERVFAIL, and nothing else.
    Code(u8),
    /// The right answer, after this time.
    Late(Duration),
}

impl NameServer {
    /// Starts a server that knows no name. Its answers may be cached for `ttl` seconds.
    pub fn start(ttl: u32) -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port is free"));
        let address = socket.local_addr().expect("it is bound");
        let shared = Arc::new(Shared { ttl, names: Mutex::default(), asked: Mutex::default() });
        let of_thread = Arc::clone(&shared);
        let thread = spawn(move || of_thread.serve(&socket));
        Self { address, shared, thread: Some(thread) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives a name these addresses from now on. What was set for the name before no longer holds.
    pub fn knows(&self, name: &str, addresses: &[IpAddr]) {
        let known = Name { look_up: LookUp::Found, addresses: addresses.to_vec(), failing: None };
        self.shared.names().insert(name.to_owned(), known);
    }

    /// Sets how look-ups of a name end from now on. A known name keeps its addresses; a new one has none.
    pub fn set(&self, name: &str, look_up: LookUp) {
        let mut names = self.shared.names();
        let new = Name { look_up, addresses: Vec::new(), failing: None };
        names.entry(name.to_owned()).or_insert(new).look_up = look_up;
    }

    /// Makes questions for one family of a name fail from now on. Panics if the name is unknown.
    pub fn fails(&self, name: &str, family: Family, failing: Failing) {
        let wanted = match family {
            Family::Four => A,
            Family::Six => AAAA,
        };
        self.shared.names().get_mut(name).expect("it knows the name").failing = Some((wanted, failing));
    }

    /// How often the server was asked for a name.
    pub fn asked(&self, name: &str) -> usize {
        self.shared.asked().get(name).copied().unwrap_or(0)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        // An empty message ends it. If it cannot be sent, the thread ends with the process.
        let sent = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(&[], self.address));
        if let (Ok(_), Some(thread)) = (sent, self.thread.take()) {
            // The join fails only if the thread panicked, which printed a message.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn names(&self) -> MutexGuard<'_, HashMap<String, Name>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, socket: &Arc<UdpSocket>) {
        let mut buffer = [0; 1500];
        while let Ok((read @ 1.., from)) = socket.recv_from(&mut buffer) {
            let Some((answer, look_up)) = self.answer(&buffer[..read]) else { continue };
            let socket = Arc::clone(socket);
            // The one who asked may have gone.
            let send = move || drop(socket.send_to(&answer, from));
            match look_up {
                LookUp::Slow(time) => {
                    #[expect(clippy::disallowed_methods, reason = "a thread of its own")]
                    drop(spawn(move || {
                        sleep(time);
                        send();
                    }));
                }
                _ => send(),
            }
        }
    }

    /// Counts a query, and returns its answer with the time to send it; `None` if no answer is sent.
    fn answer(&self, query: &[u8]) -> Option<(Vec<u8>, LookUp)> {
        let mut labels = Vec::new();
        let mut at = HEADER;
        while let length @ 1.. = usize::from(*query.get(at)?) {
            labels.push(String::from_utf8_lossy(query.get(at + 1..at + 1 + length)?).to_lowercase());
            at += 1 + length;
        }
        let question = query.get(HEADER..at + 1 + TYPE_AND_CLASS)?;
        let wanted = u16::from_be_bytes([query[at + 1], query[at + 2]]);
        let name = labels.join(".");
        *self.asked().entry(name.clone()).or_default() += 1;
        let unknown = Name { look_up: LookUp::Unknown, addresses: Vec::new(), failing: None };
        let Name { look_up, addresses, failing } = self.names().get(&name).cloned().unwrap_or(unknown);
        let failing = failing.filter(|(kind, _)| *kind == wanted).map(|(_, failing)| failing);
        let look_up = match failing {
            Some(Failing::Silent) => LookUp::Silent,
            Some(Failing::Late(time)) => LookUp::Slow(time),
            Some(Failing::Code(code)) => {
                let head = [&query[..2], &[FOUND[0], FOUND[1] | code], &[0, 1], &[0; 6], question];
                return Some((head.concat(), look_up));
            }
            None => look_up,
        };
        let (flags, addresses) = match look_up {
            LookUp::Silent => return None,
            LookUp::Unknown => (NO_SUCH_NAME, Vec::new()),
            LookUp::Found | LookUp::Slow(_) => (FOUND, addresses),
        };
        let data = addresses.into_iter().filter_map(|address| match address {
            IpAddr::V4(address) if wanted == A => Some(address.octets().to_vec()),
            IpAddr::V6(address) if wanted == AAAA => Some(address.octets().to_vec()),
            _ => None,
        });
        let data: Vec<_> = data.collect();
        let count = u16::try_from(data.len()).ok()?.to_be_bytes();
        let authority = [0, u8::from(data.is_empty())];
        let mut answer = [&query[..2], &flags, &[0, 1], &count, &authority, &[0; 2], question].concat();
        for data in data {
            // The name is that of the question.
            answer.extend([0xc0, HEADER as u8]);
            answer.extend(wanted.to_be_bytes());
            answer.extend([0, 1]);
            answer.extend(self.ttl.to_be_bytes());
            answer.extend([0, data.len() as u8]);
            answer.extend(data);
        }
        if authority[1] == 1 {
            // How long a negative answer may be cached (RFC 2308): the last number of the SOA record, whose names are
            // the root.
            answer.push(0);
            answer.extend(SOA.to_be_bytes());
            answer.extend([0, 1]);
            answer.extend(self.ttl.to_be_bytes());
            answer.extend([0, 22, 0, 0]);
            answer.extend([0; 16]);
            answer.extend(self.ttl.to_be_bytes());
        }
        Some((answer, look_up))
    }
}
