//! A POST with chosen headers, for requests that the methods of `Stack` cannot make.

use ringback_testkit::{Reply, http_client};

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// Posts a body with these headers and returns the response. It uses a client of its own and borrows nothing, so the
/// future can be spawned, and dropping it closes the connection.
pub(crate) fn raw_post(
    url: String,
    headers: &[(&str, &str)],
    body: String,
) -> impl Future<Output = Reply> + Send + use<> {
    let request =
        headers.iter().fold(http_client().post(url), |request, (name, value)| request.header(*name, *value));
    async { Reply::read(request.body(body).send().await.expect("a response")).await.expect("a body") }
}
