//! The bytes of a request with one job or a batch: written once; each further request only replaces the numbers.

use std::net::SocketAddr;

use serde_json::Value;

use super::connection::Response;
use crate::job::job;

/// The placeholder of a job's number; no job has this number.
const PLACEHOLDER: usize = 9_999_999_999_999_999;
const DIGITS: usize = 16;

/// One or more jobs as the bytes of an HTTP request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    /// The positions of the numbers, per job.
    places: Vec<Vec<usize>>,
    kind: Kind,
}

/// The route of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    One,
    Batch,
}

impl Request {
    /// A submit of one measured job for a URL, with the fields of `more`.
    pub(crate) fn one(server: SocketAddr, url: &str, more: &Value) -> Self {
        let body = job(PLACEHOLDER, url, more).to_string();
        Self::write(server, "/v1/jobs", "", &body, Kind::One, 1)
    }

    /// The request of [`Self::one`] with the API key of a caller.
    pub(crate) fn one_with_key(server: SocketAddr, url: &str, more: &Value, key: &str) -> Self {
        let body = job(PLACEHOLDER, url, more).to_string();
        let header = format!("authorization: Bearer {key}\r\n");
        Self::write(server, "/v1/jobs", &header, &body, Kind::One, 1)
    }

    pub(crate) fn batch(server: SocketAddr, jobs: usize, url: &str, more: &Value) -> Self {
        let body = Value::from(vec![job(PLACEHOLDER, url, more); jobs]).to_string();
        Self::write(server, "/v1/jobs/batch", "", &body, Kind::Batch, jobs)
    }

    fn write(server: SocketAddr, path: &str, header: &str, body: &str, kind: Kind, jobs: usize) -> Self {
        let length = body.len();
        let text = format!(
            "POST {path} HTTP/1.1\r\nhost: {server}\r\ncontent-type: application/json\r\n\
             {header}content-length: {length}\r\n\r\n{body}"
        );
        let places: Vec<_> = text.match_indices(&PLACEHOLDER.to_string()).map(|(at, _)| at).collect();
        let places = places.chunks(places.len() / jobs).map(<[_]>::to_vec).collect();
        Self { bytes: text.into_bytes(), places, kind }
    }

    pub(crate) fn jobs(&self) -> usize {
        self.places.len()
    }

    /// Gives the jobs consecutive numbers from `first`.
    pub(crate) fn number(&mut self, first: usize) {
        for (number, places) in (first..).zip(&self.places) {
            let mut digits = [b'0'; DIGITS];
            let mut left = number;
            for digit in digits.iter_mut().rev() {
                *digit = b'0' + (left % 10) as u8;
                left /= 10;
            }
            for &at in places {
                self.bytes[at..at + DIGITS].copy_from_slice(&digits);
            }
        }
    }

    /// The bytes to send.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether a response says that all jobs are accepted; for a single job also that it is new.
    pub(crate) fn accepted_by(&self, answer: Response<'_>) -> bool {
        match self.kind {
            Kind::One => answer.status == 201,
            Kind::Batch => answer.status == 200 && answer.text().contains("\"refused\":0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7411);

    /// Parses the body, after a check that the head has its length.
    fn body(request: &Request) -> Value {
        let text = str::from_utf8(request.bytes()).expect("it is text");
        let (head, body) = text.split_once("\r\n\r\n").expect("it has a head");
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        serde_json::from_str(body).expect("it is JSON")
    }

    #[test]
    fn a_numbered_request_is_the_job_of_that_number() {
        let mut request = Request::one(SERVER, "http://a/", &json!({ "delay": 5 }));
        for number in [1_234_567, 0] {
            request.number(number);
            assert_eq!(body(&request), job(number, "http://a/", &json!({ "delay": 5 })));
        }
        assert_eq!(request.jobs(), 1);
    }

    #[test]
    fn the_jobs_of_a_batch_are_numbered_in_turn() {
        let mut request = Request::batch(SERVER, 3, "http://a/", &json!({}));
        request.number(41);
        let jobs: Vec<_> = (41..44).map(|n| job(n, "http://a/", &json!({}))).collect();
        assert_eq!((body(&request), request.jobs()), (Value::from(jobs), 3));
    }
}
