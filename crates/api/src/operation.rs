//! The properties of each operation of the API (its name, method and path, who may call it, and whether it leaves an
//! entry in the audit log), and which operation a request is. `routes` lists the operations.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use http::Method;
use ringback_core::access::Scope;

/// What a caller needs for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: the answer is the same for all.
    Nothing,
    Scope(Scope),
    Root,
}

impl From<Scope> for Need {
    fn from(scope: Scope) -> Self {
        Self::Scope(scope)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) name: Arc<str>,
    /// Its method. HEAD is served as GET is.
    pub(crate) method: Method,
    pub(crate) path: Arc<str>,
    pub(crate) need: Need,
    pub(crate) is_audited: bool,
}

impl Operation {
    /// Whether the operation can be about all tenants at once: it reads, and its path names nothing. The history is the
    /// exception: it is read for one tenant at a time.
    pub(crate) fn takes_all_tenants(&self) -> bool {
        self.method.is_safe() && !self.path.contains('{') && &*self.path != "/v1/history"
    }
}

/// All operations, by the path of their route.
#[derive(Debug, Default)]
pub(crate) struct Operations(HashMap<Arc<str>, Vec<Operation>>);

impl Operations {
    /// The operation of a request; `None` if no route has its path. For a method that the path does not have, the first
    /// operation of the path: callers that may call that one get the router's 405.
    pub(crate) fn of(&self, request: &Request) -> Option<&Operation> {
        let all = self.0.get(request.extensions().get::<MatchedPath>()?.as_str())?;
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        all.iter().find(|operation| operation.method == *method).or(all.first())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.0.values().flatten()
    }

    /// The operations that leave entries in the audit log, by their names.
    pub(crate) fn audited(&self) -> Vec<&str> {
        let audited = self.0.values().flatten().filter(|operation| operation.is_audited);
        let mut names: Vec<_> = audited.map(|operation| &*operation.name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl FromIterator<Operation> for Operations {
    fn from_iter<I: IntoIterator<Item = Operation>>(all: I) -> Self {
        let mut by_path = HashMap::<Arc<str>, Vec<Operation>>::new();
        for operation in all {
            by_path.entry(Arc::clone(&operation.path)).or_default().push(operation);
        }
        Self(by_path)
    }
}
