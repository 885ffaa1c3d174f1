//! Generated clients: openapi-python-client and openapi-typescript know every operation of the OpenAPI document, and
//! calls of their code compile. `make openapi-tools` installs them; without them a test prints that it was left out.

use std::collections::BTreeSet;
use std::fs::write;
use std::path::Path;
use std::process::Command;

use super::examples::document;
use super::tools::{installed, output};
use crate::prelude::*;

/// Media types that openapi-python-client cannot read or write.
const LINES: &str = "application/x-ndjson";

/// Uses what openapi-python-client has made: every module can be imported, and a submit has the fields of a job.
const PYTHON_CALL: &str = r#"
import importlib, pathlib, sys
sys.path.insert(0, ".")
for path in pathlib.Path("ringback_client/api").rglob("[a-z]*.py"):
    importlib.import_module(".".join(path.with_suffix("").parts))
from ringback_client.api.jobs import submit
from ringback_client.models import JobRequest
job = JobRequest(topic="pay.notify", delay="10m", url="https://merchant.example/notify")
assert submit._get_kwargs(body=job)["json"] == {"topic": "pay.notify", "delay": "10m", "url": "https://merchant.example/notify"}
"#;

#[tokio::test]
async fn openapi_python_client_makes_every_operation() {
    let Some(tool) = installed("openapi-python-client") else { return };
    let document = document().await;
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path().join("openapi.json"), document.to_string()).expect("a file");
    let mut command = Command::new(&tool);
    command.args(["generate", "--path", "openapi.json", "--output-path", "client"]);
    command.current_dir(directory.path());
    let text = output(command).await;
    let with_lines = operations(&document, |operation| operation.to_string().contains(LINES));
    let warned = text.lines().filter_map(|line| line.strip_prefix("WARNING parsing "));
    let warned: BTreeSet<_> = warned.filter_map(|line| line.split(" within ").next()).collect();
    let others: Vec<_> = warned.iter().filter(|name| !with_lines.contains(**name)).collect();
    assert!(others.is_empty(), "it cannot make {others:?}:\n{text}");
    let only_lines = operations(&document, |operation| {
        let content = operation["requestBody"]["content"].as_object();
        content.is_some_and(|content| content.keys().all(|media_type| media_type == LINES))
    });
    let dropped = text.lines().filter(|line| line.contains("Endpoint will not be generated")).count();
    assert_eq!(dropped, only_lines.len(), "{text}");
    let client = directory.path().join("client");
    let mut command = Command::new(tool.with_file_name("python"));
    command.args(["-c", PYTHON_CALL]).current_dir(client);
    output(command).await;
}

#[tokio::test]
async fn openapi_typescript_makes_types_with_which_calls_compile() {
    let (Some(tool), Some(compiler)) = (installed("openapi-typescript"), installed("tsc")) else { return };
    let document = document().await;
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path().join("openapi.json"), document.to_string()).expect("a file");
    let calls = Path::new(env!("CARGO_MANIFEST_DIR")).join("http/openapi/calls.ts");
    std::fs::copy(calls, directory.path().join("calls.ts")).expect("a file");
    let mut command = Command::new(tool);
    command.args(["openapi.json", "--output", "api.ts"]).current_dir(directory.path());
    output(command).await;
    let types = std::fs::read_to_string(directory.path().join("api.ts")).expect("types");
    for (name, _) in document["components"]["schemas"].as_object().expect("schemas") {
        assert!(types.contains(&format!("\n        {name}: ")), "there is no type {name}");
    }
    let mut command = Command::new(compiler);
    command.args(["--noEmit", "--strict", "calls.ts"]).current_dir(directory.path());
    output(command).await;
}

/// The operations for which `has` is true, each as its method and path.
fn operations(document: &Value, has: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let paths = document["paths"].as_object().expect("paths").iter();
    let all = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods").iter();
        methods.map(move |(method, operation)| (format!("{} {path}", method.to_uppercase()), operation))
    });
    all.filter(|(_, operation)| has(operation)).map(|(name, _)| name).collect()
}
