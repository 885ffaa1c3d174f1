//! What a process calls itself where others read it: the machine and the process's number.

/// Such as `worker-3/4711`; the machine is `unknown` where it has no name in UTF-8.
pub fn of_process() -> String {
    let machine = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    let machine = machine.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned());
    format!("{machine}/{}", std::process::id())
}
