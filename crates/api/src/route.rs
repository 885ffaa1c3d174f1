//! The type `Route`: an operation of the API with its handler. The table of routes is in `routes`.

use std::sync::Arc;

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use http::Method;
use utoipa::Path;
use utoipa::openapi::HttpMethod;

use crate::operation::{Need, Operation};
use crate::state::Api;

pub(crate) struct Route {
    pub(crate) operation: Operation,
    pub(crate) handler: MethodRouter<Arc<Api>>,
}

impl Route {
    /// A route of the OpenAPI document, whose entry `P` has the name, the method and the path. Not audited.
    pub(crate) fn new<P: Path, T: 'static>(
        need: impl Into<Need>,
        handler: impl Handler<T, Arc<Api>>,
    ) -> Self {
        let (method, filter) = match P::methods()[..] {
            [HttpMethod::Get] => (Method::GET, MethodFilter::GET),
            [HttpMethod::Post] => (Method::POST, MethodFilter::POST),
            [HttpMethod::Put] => (Method::PUT, MethodFilter::PUT),
            [HttpMethod::Patch] => (Method::PATCH, MethodFilter::PATCH),
            [HttpMethod::Delete] => (Method::DELETE, MethodFilter::DELETE),
            _ => unreachable!("an operation has one of these methods"),
        };
        let name = P::operation().operation_id.expect("an operation has an id").into();
        let operation =
            Operation { name, method, path: P::path().into(), need: need.into(), is_audited: false };
        Self { operation, handler: on(filter, handler) }
    }

    /// A route that is not in the OpenAPI document. Not audited.
    pub(crate) fn undocumented(
        need: impl Into<Need>,
        (name, method, path): (&str, Method, &str),
        handler: MethodRouter<Arc<Api>>,
    ) -> Self {
        let operation =
            Operation { name: name.into(), method, path: path.into(), need: need.into(), is_audited: false };
        Self { operation, handler }
    }

    /// Makes the operation leave an entry in the audit log.
    pub(crate) fn audited(mut self) -> Self {
        self.operation.is_audited = true;
        self
    }
}
