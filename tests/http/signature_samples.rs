//! The samples in `docs/guides/verify-signatures.md`, in Python, Node and Go: each accepts callbacks that are signed
//! and recent, and refuses all others. The test adds the code that reads a request and calls the documented function.
//! A sample runs if its tool is installed.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tempfile::TempDir;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guides/verify-signatures.md");

/// The test vector of the official libraries.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const TIMESTAMP: i64 = 1_614_265_330;
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

const OTHER_SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SIX_MINUTES: i64 = 360;

/// A request, and what a receiver should make of it.
struct Case {
    name: &'static str,
    secrets: String,
    now: i64,
    id: &'static str,
    timestamp: String,
    signatures: Option<String>,
    body: Vec<u8>,
    is_valid: bool,
}

/// Reads header lines, an empty line and the body from the standard input, and calls the function of the document.
const PYTHON_MAIN: &str = r#"
import os, sys

head, _, body = sys.stdin.buffer.read().partition(b"\n\n")
lines = [line.partition(":") for line in head.decode("latin-1").split("\n")]
headers = {name.strip().lower(): value.strip() for name, _, value in lines}
try:
    verify(os.environ["WEBHOOK_SECRETS"].split(), headers, body, int(os.environ["WEBHOOK_NOW"]))
except ValueError as error:
    sys.exit(str(error))
print("valid")
"#;
const NODE_MAIN: &str = r#"
import { buffer } from "node:stream/consumers";

const request = await buffer(process.stdin);
const end = request.indexOf("\n\n");
const headers = {};
for (const line of request.toString("latin1", 0, end).split("\n")) {
  const [name, ...value] = line.split(":");
  headers[name.trim().toLowerCase()] = value.join(":").trim();
}
const secrets = process.env.WEBHOOK_SECRETS.split(" ").filter((secret) => secret !== "");
try {
  verify(secrets, headers, request.subarray(end + 2), Number(process.env.WEBHOOK_NOW));
  console.log("valid");
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
"#;
const GO_HEAD: &str = r#"package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

"#;
const GO_MAIN: &str = r#"
func main() {
	request, _ := io.ReadAll(os.Stdin)
	head, body, _ := bytes.Cut(request, []byte("\n\n"))
	headers := http.Header{}
	for _, line := range strings.Split(string(head), "\n") {
		name, value, _ := strings.Cut(line, ":")
		headers.Set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	now, _ := strconv.ParseInt(os.Getenv("WEBHOOK_NOW"), 10, 64)
	if err := verify(strings.Fields(os.Getenv("WEBHOOK_SECRETS")), headers, body, time.Unix(now, 0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("valid")
}
"#;

#[test]
fn the_sample_in_python_accepts_what_is_signed_and_nothing_else() {
    if is_installed("python3", "--version") {
        let directory = directory_with("verify.py", &[&sample("python"), PYTHON_MAIN]);
        check(&directory, Path::new("python3"), &["verify.py"]);
    }
}

#[test]
fn the_sample_for_node_accepts_what_is_signed_and_nothing_else() {
    if is_installed("node", "--version") {
        let directory = directory_with("verify.mjs", &[&sample("js"), NODE_MAIN]);
        check(&directory, Path::new("node"), &["verify.mjs"]);
    }
}

#[test]
fn the_sample_in_go_accepts_what_is_signed_and_nothing_else() {
    let sample = sample("go");
    if is_installed("go", "version") {
        let directory = directory_with("verify.go", &[GO_HEAD, &sample, GO_MAIN]);
        compile(&directory, "go", &["build", "-o", "verify", "verify.go"]);
        check(&directory, &directory.path().join("verify"), &[]);
    }
}

#[test]
fn the_cases_are_signed_as_the_official_libraries_sign() {
    assert_eq!(sign(SECRET, BODY), SIGNATURE);
}

fn accepted() -> Vec<Case> {
    let bytes: Vec<u8> = (0..=u8::MAX).chain(*b"\r\n\n\n\r\n\r\n\0").collect();
    let unknown_first = format!("v1a,AAAA v2,? v1 v1,AAAA= {SIGNATURE}");
    let both = format!("{OTHER_SECRET} {SECRET}");
    vec![
        valid("the vector of the official libraries"),
        Case { signatures: Some(unknown_first), ..valid("unknown versions and wrong signatures first") },
        Case { secrets: both, ..valid("the second of two secrets") },
        Case { signatures: Some(sign(SECRET, &bytes)), body: bytes, ..valid("every byte, and CRLF") },
        Case { signatures: Some(sign(SECRET, b"")), body: Vec::new(), ..valid("an empty body") },
        Case { now: TIMESTAMP + 300, ..valid("five minutes old") },
        Case { now: TIMESTAMP - 300, ..valid("five minutes ahead") },
    ]
}

fn refused() -> Vec<Case> {
    let wrong = SIGNATURE.replace('g', "h");
    let of_v1a = SIGNATURE.replace("v1,", "v1a,");
    // Signatures with an empty key, which anybody can make.
    let empty_key = "whsec_".to_owned();
    let by_nobody = sign(&empty_key, BODY);
    vec![
        Case { body: [BODY, b" "].concat(), ..invalid("a changed body") },
        Case { id: "msg_p5jXN8AQM9LWM0D4loKWxJel", ..invalid("a changed id") },
        Case { timestamp: (TIMESTAMP + 1).to_string(), ..invalid("a changed timestamp") },
        Case { secrets: OTHER_SECRET.to_owned(), ..invalid("the wrong secret") },
        Case { secrets: String::new(), ..invalid("no secret") },
        Case { secrets: empty_key, signatures: Some(by_nobody), ..invalid("an empty secret") },
        Case { now: TIMESTAMP + SIX_MINUTES, ..invalid("six minutes old") },
        Case { now: TIMESTAMP - SIX_MINUTES, ..invalid("six minutes ahead") },
        Case { timestamp: "yesterday".to_owned(), ..invalid("a timestamp that is not a number") },
        Case { timestamp: "9".repeat(30), ..invalid("a timestamp that is too large") },
        Case { signatures: None, ..invalid("no signature header") },
        Case { signatures: Some("v1,*not base64*".to_owned()), ..invalid("a signature that is not base64") },
        Case { signatures: Some(of_v1a), ..invalid("only a signature of another version") },
        Case { signatures: Some(vec![wrong; 1_000].join(" ")), ..invalid("many wrong signatures") },
    ]
}

fn valid(name: &'static str) -> Case {
    Case {
        name,
        secrets: SECRET.to_owned(),
        now: TIMESTAMP,
        id: ID,
        timestamp: TIMESTAMP.to_string(),
        signatures: Some(SIGNATURE.to_owned()),
        body: BODY.to_vec(),
        is_valid: true,
    }
}

/// The vector as a case that must be refused; the caller has to change something in it.
fn invalid(name: &'static str) -> Case {
    Case { is_valid: false, ..valid(name) }
}

/// Signs a body, with the id and the timestamp of the vector.
fn sign(secret: &str, body: &[u8]) -> String {
    let key = STANDARD.decode(secret.trim_start_matches("whsec_")).expect("a secret is base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key may have any length");
    mac.update(format!("{ID}.{TIMESTAMP}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

impl Case {
    /// The case as input for a sample: header lines, an empty line, and the body.
    fn request(&self) -> Vec<u8> {
        let mut head = format!("Webhook-Id: {}\nwebhook-timestamp: {}\n", self.id, self.timestamp);
        if let Some(signatures) = &self.signatures {
            head += &format!("webhook-signature: {signatures}\n");
        }
        [head.as_bytes(), b"content-type: application/json\n\n", &self.body].concat()
    }
}

/// The only block of the document in a language.
fn sample(language: &str) -> String {
    let document = fs::read_to_string(DOCUMENT).expect("the document can be read");
    let fence = format!("\n```{language}\n");
    let (_, rest) = document.split_once(&fence).expect("it has a block in this language");
    let (sample, rest) = rest.split_once("\n```\n").expect("the block ends");
    assert!(!rest.contains(&fence), "there are several blocks in {language}");
    format!("{sample}\n")
}

fn directory_with(file: &str, parts: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join(file), parts.concat()).expect("a file");
    directory
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn is_installed(tool: &str, argument: &str) -> bool {
    let is_installed = Command::new(tool).arg(argument).output().is_ok_and(|run| run.status.success());
    if !is_installed {
        eprintln!("skipped: {tool} is not installed");
    }
    is_installed
}

fn compile(directory: &TempDir, tool: &str, arguments: &[&str]) {
    let mut command = Command::new(tool);
    // With these variables, Go downloads no module and no other version.
    command.env("GOFLAGS", "").env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    let run = command.args(arguments).current_dir(directory.path()).output().expect("the compiler starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// Runs a sample on each case. A refusal must be exit status 1 and one line on standard error.
fn check(directory: &TempDir, program: &Path, arguments: &[&str]) {
    for case in accepted().into_iter().chain(refused()) {
        let run = run(directory, program, arguments, &case);
        let lines = String::from_utf8_lossy(&run.stderr).lines().count();
        let printed = (run.stdout.trim_ascii_end(), lines);
        let expected: (&[u8], _) = if case.is_valid { (b"valid", 0) } else { (b"", 1) };
        let code = i32::from(!case.is_valid);
        assert!(run.status.code() == Some(code) && printed == expected, "{}: {run:?}", case.name);
    }
}

fn run(directory: &TempDir, program: &Path, arguments: &[&str], case: &Case) -> Output {
    let request = directory.path().join("request");
    fs::write(&request, case.request()).expect("a file");
    Command::new(program)
        .args(arguments)
        .current_dir(directory.path())
        .env("WEBHOOK_SECRETS", &case.secrets)
        .env("WEBHOOK_NOW", case.now.to_string())
        .stdin(File::open(&request).expect("the request can be read"))
        .output()
        .expect("the sample starts")
}
