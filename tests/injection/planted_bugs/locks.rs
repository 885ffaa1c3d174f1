//! Records the claims of a shard and the calls made under them from MONITOR of Redis, which lists all calls in order,
//! each with the commands that its script runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ringback_testkit::history::{Entry, History, LockUse};
use ringback_testkit::shard_fields;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The calls that bring the fencing token of a shard as their first argument.
const FENCED: [&str; 5] = ["promote", "recover", "evict", "acknowledge", "release_shard"];

/// A claim, or a call under one.
struct Use {
    /// When the call was made, in microseconds since 1970.
    at: u64,
    token: u64,
    is_claim: bool,
    /// Whether it has written nothing, because the token was old.
    is_fenced: bool,
}

/// Reads MONITOR until [`Self::finish`] is called.
pub(crate) struct LockWatch {
    seen: Arc<Mutex<Seen>>,
    // The task ends when this is dropped.
    _reader: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    uses: Vec<Use>,
    /// Whether the call that runs is a claim, or one under a claim, which is then the last of `uses`.
    call: Option<Call>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Claim,
    Fenced,
}

impl LockWatch {
    pub(crate) async fn start(port: u16) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server runs");
        stream.write_all(b"MONITOR\r\n").await.expect("the server runs");
        let mut lines = BufReader::new(stream).lines();
        lines.next_line().await.expect("the server runs");
        let seen = Arc::<Mutex<Seen>>::default();
        let (mut reader, to) = (JoinSet::new(), Arc::clone(&seen));
        reader.spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                to.lock().unwrap_or_else(PoisonError::into_inner).take(&line);
            }
        });
        Self { seen, _reader: reader }
    }

    pub(crate) fn claims(&self) -> usize {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.uses.iter().filter(|used| used.is_claim).count()
    }

    /// Writes the claims and effects to the history.
    pub(crate) fn finish(self, history: &History) {
        for Use { at, token, is_claim, is_fenced } in
            &self.seen.lock().unwrap_or_else(PoisonError::into_inner).uses
        {
            let t = at.saturating_sub(history.wall());
            let used = LockUse { t, asked: t, lock: "shard-0", token: *token, pid: 0, fenced: *is_fenced };
            history.write(&if *is_claim { Entry::Claim(used) } else { Entry::Effect(used) });
        }
    }
}

impl Seen {
    /// Reads a line of MONITOR such as `+1700000000.123456 [0 127.0.0.1:5] "FCALL" "ringback_0a_take_shard" "1"
    /// "ringback:{0}" "me"`. A fenced call counts as an effect once its script writes a hash.
    fn take(&mut self, line: &str) {
        let Some((head, command)) = line.split_once("] \"") else { return };
        let words: Vec<&str> = command.trim_end_matches('"').split("\" \"").collect();
        let time = head.trim_start_matches('+').split(' ').next().unwrap_or_default().replace('.', "");
        let at = time.parse().unwrap_or_default();
        if !head.ends_with(" lua") {
            self.call = None;
            if let ["FCALL", function, "1", _, token, ..] = words.as_slice() {
                let is_call = |name: &&str| {
                    function.split_once(name).is_some_and(|(_, rest)| matches!(rest, "" | "_logged"))
                };
                if is_call(&"_take_shard") {
                    self.call = Some(Call::Claim);
                } else if FENCED.iter().any(|name| is_call(&format!("_{name}").as_str())) {
                    let token = token.parse().unwrap_or_default();
                    self.uses.push(Use { at, token, is_claim: false, is_fenced: true });
                    self.call = Some(Call::Fenced);
                }
            }
            return;
        }
        match (self.call, words.as_slice()) {
            (Some(Call::Claim), ["HSET", _, .., "more", more]) => {
                let fields = BTreeMap::from([(b"more".to_vec(), unescaped(more))]);
                let token = shard_fields(&fields)["epoch"].unsigned_abs();
                self.uses.push(Use { at, token, is_claim: true, is_fenced: false });
            }
            (Some(Call::Fenced), ["HSET", ..]) => {
                self.uses.iter_mut().next_back().expect("the call").is_fenced = false;
            }
            _ => {}
        }
    }
}

/// The bytes of a value that MONITOR shows with C escapes, such as `\n` and `\x00`.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let escape = if byte == b'\\' { rest.next() } else { None };
        bytes.push(match escape {
            None => byte,
            Some(b'x') => {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                u8::from_str_radix(&String::from_utf8_lossy(&digits), 16).expect("two hexadecimal digits")
            }
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'a') => 0x07,
            Some(b'b') => 0x08,
            Some(itself) => itself,
        });
    }
    bytes
}
