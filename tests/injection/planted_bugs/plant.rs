//! Plants a bug in a stack of the real processes: in the function library on Redis, in a proxy, or in its options.

use redis::aio::MultiplexedConnection;
use redis::{Value, cmd};
use ringback_testkit::{HttpProxy, Sink, Stack, StackOptions};

use super::bugs::{BUGS, Bug, Place};

/// Where submits and callbacks go: to the API and the receiver, or to a proxy with a bug before one of them.
pub(crate) struct Ways {
    pub(crate) api: String,
    receiver: String,
    _proxy: Option<HttpProxy>,
}

impl Ways {
    pub(crate) fn receiver(&self, path: &str) -> String {
        format!("{}{path}", self.receiver)
    }
}

/// The options of a stack, with the retry delays of a bug of that kind.
pub(crate) fn options(bug: Option<&Bug>, options: StackOptions) -> StackOptions {
    match bug.map(|bug| bug.place) {
        Some(Place::Retry(tiers)) => options.retry(tiers),
        _ => options,
    }
}

/// Plants a bug in the library or in a proxy, if it belongs there. Returns where submits and callbacks have to go.
pub(crate) async fn plant(bug: Option<&Bug>, stack: &Stack, sink: &Sink) -> Ways {
    let mut ways = Ways { api: stack.url(""), receiver: sink.url(""), _proxy: None };
    let mut replaced = &[][..];
    match bug.map(|bug| bug.place) {
        Some(Place::Scripts(texts)) => replaced = texts,
        Some(Place::Submits(changes)) => {
            let proxy = HttpProxy::start(&ways.api, changes).await;
            (ways.api, ways._proxy) = (proxy.url(""), Some(proxy));
        }
        Some(Place::Callbacks(changes)) => {
            let proxy = HttpProxy::start(&ways.receiver, changes).await;
            (ways.receiver, ways._proxy) = (proxy.url(""), Some(proxy));
        }
        Some(Place::Retry(_) | Place::NotLoadedAgain) | None => {}
    }
    replace(&mut stack.redis().client().await, replaced).await;
    ways
}

/// Replaces texts of the library and loads it again. Processes load a library only if the server has none, so they use
/// this one. Asserts that the texts of all bugs are in the library once, so that each run finds a text that has changed.
async fn replace(redis: &mut MultiplexedConnection, replaced: &[(&str, &str)]) {
    let mut list = cmd("FUNCTION");
    list.arg("LIST").arg("LIBRARYNAME").arg("ringback_*").arg("WITHCODE");
    let libraries: Vec<Vec<Value>> = list.query_async(redis).await.expect("FUNCTION LIST");
    let fields = libraries.into_iter().next().expect("a library");
    let code = fields.into_iter().skip_while(|field| *field != Value::BulkString(b"library_code".to_vec()));
    let code = code.last().expect("the code");
    let mut code: String = redis::from_redis_value(code).expect("a text");
    for bug in BUGS {
        if let Place::Scripts(texts) = bug.place {
            for (text, _) in texts {
                assert_eq!(
                    code.matches(text).count(),
                    1,
                    "{}: this is in the library once: {text}",
                    bug.name
                );
            }
        }
    }
    for (right, wrong) in replaced {
        code = code.replace(right, wrong);
    }
    let mut load = cmd("FUNCTION");
    load.arg("LOAD").arg("REPLACE").arg(code);
    let () = load.query_async(redis).await.expect("FUNCTION LOAD");
}
