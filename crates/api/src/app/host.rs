//! Middleware: refuses requests of HTTP/1.1 that do not name exactly one host (RFC 9112, section 3.2). A proxy before
//! the API and the API itself could take one of two for the host, and each another one.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::HOST;
use http::{StatusCode, Version};

use crate::error::ApiError;

pub(crate) async fn one_host(request: Request, next: Next) -> Response {
    let hosts = request.headers().get_all(HOST).iter().count();
    if request.version() == Version::HTTP_11 && hosts != 1 {
        let detail = format!("the request has {hosts} Host headers; HTTP/1.1 asks for exactly one");
        return ApiError::new(StatusCode::BAD_REQUEST, detail).into_response();
    }
    next.run(request).await
}
