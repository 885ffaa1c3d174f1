//! Verifies callbacks with the official libraries of Standard Webhooks for Rust, Python and Node. The last two are
//! left out, with a message, unless `deploy/local/webhook-tools.sh` has installed them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use ringback_testkit::Arrival;
use serde_json::{Value, json};
use standardwebhooks::Webhook;

/// Verifies each line of standard input, and prints one line for each.
const PYTHON: &str = "
import base64, json, sys
from standardwebhooks import Webhook
for line in sys.stdin:
    one = json.loads(line)
    try:
        Webhook(one['secret']).verify(base64.b64decode(one['body']), one['headers'])
        print('valid')
    except Exception as error:
        print(error)
";
const NODE: &str = "
const { Webhook } = require('standardwebhooks');
const lines = require('fs').readFileSync(0, 'utf8').split('\\n').filter((line) => line);
for (const line of lines) {
  const one = JSON.parse(line);
  try {
    new Webhook(one.secret).verify(Buffer.from(one.body, 'base64'), one.headers);
    console.log('valid');
  } catch (error) {
    console.log(String(error));
  }
}
";

/// A callback, and a secret of its receiver.
pub(super) struct Signed {
    secret: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Signed {
    pub(super) fn of(arrival: &Arrival, secret: &str) -> Self {
        let mut headers = HeaderMap::new();
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            let value = arrival.header(name).expect("a header").parse().expect("a header's value");
            headers.insert(name, value);
        }
        Self { secret: secret.to_owned(), headers, body: arrival.body.to_vec() }
    }

    fn json(&self) -> Value {
        let text = |value: &http::HeaderValue| value.to_str().expect("ASCII").to_owned();
        let headers: serde_json::Map<_, _> =
            self.headers.iter().map(|(name, value)| (name.to_string(), text(value).into())).collect();
        json!({"secret": self.secret, "headers": headers, "body": STANDARD.encode(&self.body)})
    }
}

/// Asserts that each library accepts all callbacks.
pub(super) fn all_accept(signed: &[Signed]) {
    each_library(signed, |library, verdict| assert_eq!(verdict, "valid", "{library}"));
}

/// Asserts that no library accepts any of the callbacks.
pub(super) fn none_accepts(signed: &[Signed]) {
    each_library(signed, |library, verdict| assert_ne!(verdict, "valid", "{library}"));
}

#[expect(clippy::print_stderr, reason = "a library that is left out is named")]
fn each_library(signed: &[Signed], judge: impl Fn(&str, &str)) {
    for one in signed {
        let verified = Webhook::new(&one.secret).expect("a secret").verify(&one.body, &one.headers);
        judge("Rust", &verified.map_or_else(|error| error.to_string(), |()| "valid".to_owned()));
    }
    let lines: String = signed.iter().map(|one| format!("{}\n", one.json())).collect();
    let python = tools().join("bin/python3");
    let is_installed = |library: &str| tools().join(format!("{library}.done")).exists();
    let libraries = [
        ("PyPI", is_installed("python").then(|| command(&python, "-c", PYTHON))),
        ("npm", is_installed("node").then(|| command(Path::new("node"), "-e", NODE))),
    ];
    for (library, command) in libraries {
        let Some(command) = command else {
            eprintln!(
                "skipped: standardwebhooks of {library} is not installed (deploy/local/webhook-tools.sh)"
            );
            continue;
        };
        let verdicts = run(command, &lines);
        assert_eq!(verdicts.len(), signed.len(), "{library}: {verdicts:?}");
        verdicts.iter().for_each(|verdict| judge(library, verdict));
    }
}

fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/webhook-tools")
}

fn command(program: &Path, flag: &str, script: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(flag).arg(script).env("NODE_PATH", tools().join("node_modules"));
    command
}

/// Runs a program with this input, and returns the lines that it prints. Panics unless it succeeds.
fn run(mut command: Command, input: &str) -> Vec<String> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("no panic").expect("the program reads all");
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}
