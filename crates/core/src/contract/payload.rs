//! The payload of a stored job, packed the same by both backends: path, headers, context, policy,
//! trace and body. No edge looks into it.
//!
//! Layout: the length of the meta part (2 bytes), the meta part, the body. The meta part is postcard,
//! whose format is specified and stable; after it follows the URL of the dead-letter notice, if the
//! job brought one. Then come fields that few jobs have, if there are any: a zero byte, which is in no URL, and for each
//! the byte of its tag and its value. A job with a tag that is not known cannot be read.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::clock::{Timestamp, millis};
use crate::job::{Body, Callback, CallbackMethod, Context, Delivery, Expires, Headers, Tags, Trace};
use crate::retry::RetryPolicy;

#[derive(Serialize, Deserialize)]
struct Meta {
    path: String,
    content_type: Option<String>,
    headers: Vec<(String, String)>,
    context: Vec<(String, String)>,
    retry: Option<RetryPolicy>,
    trace: Option<Trace>,
}

/// What is before the fields that few jobs have.
const MORE: u8 = 0;
/// The tag of the method. Its value is the byte of the method in [`CallbackMethod::ALL`].
const METHOD: u8 = 1;
/// The tags of the expiry, after the first due time and at a time. Their values are milliseconds in 8 bytes.
const EXPIRES_AFTER: u8 = 2;
const EXPIRES_AT: u8 = 3;
/// The tag of the URL for the notice of a success. Its value is the length in 2 bytes, and the URL.
const ON_DONE: u8 = 4;

/// Packs a delivery without its origin, timeout and tags, which stores keep beside it.
pub fn pack(delivery: &Delivery) -> Vec<u8> {
    let meta = Meta {
        path: delivery.callback.path().to_owned(),
        content_type: delivery.body.content_type.clone(),
        headers: delivery.headers.entries().to_vec(),
        context: delivery.context.entries().to_vec(),
        retry: delivery.retry.clone(),
        trace: delivery.trace,
    };
    let mut meta = postcard::to_stdvec(&meta).expect("plain data always serialises");
    meta.extend(delivery.on_dead.iter().flat_map(|url| url.to_string().into_bytes()));
    let more = more(delivery);
    if !more.is_empty() {
        meta.push(MORE);
        meta.extend(more);
    }
    let length =
        u16::try_from(meta.len()).expect("headers, context, policy and URLs have limits below 64 KiB");
    let mut packed = Vec::with_capacity(2 + meta.len() + delivery.body.bytes.len());
    packed.extend_from_slice(&length.to_be_bytes());
    packed.extend_from_slice(&meta);
    packed.extend_from_slice(&delivery.body.bytes);
    packed
}

/// The fields that few jobs have.
fn more(delivery: &Delivery) -> Vec<u8> {
    let mut more = Vec::new();
    if delivery.method != CallbackMethod::Post {
        let number = CallbackMethod::ALL.iter().position(|method| *method == delivery.method);
        more.extend([METHOD, number.and_then(|n| u8::try_from(n).ok()).expect("it is one of few")]);
    }
    if let Some(expires) = delivery.expires {
        let (tag, millis) = match expires {
            Expires::After(duration) => (EXPIRES_AFTER, millis(duration)),
            Expires::At(time) => (EXPIRES_AT, time.as_millis()),
        };
        more.push(tag);
        more.extend(millis.to_be_bytes());
    }
    if let Some(url) = &delivery.on_done {
        let url = url.to_string();
        let length = u16::try_from(url.len()).expect("a URL has a limit below 64 KiB");
        more.push(ON_DONE);
        more.extend(length.to_be_bytes());
        more.extend(url.into_bytes());
    }
    more
}

/// Unpacks the result of [`pack`]; `None` if it cannot be read.
pub fn unpack(packed: &Bytes, origin: String, timeout: Option<Duration>, tags: Tags) -> Option<Delivery> {
    let (meta, Rest { on_dead, on_done, method, expires }) = meta(packed)?;
    Some(Delivery {
        // Both are empty for a pull job.
        callback: Callback::from_parts(origin, meta.path),
        method,
        body: Body { bytes: packed.slice(without_body(packed)?.len()..), content_type: meta.content_type },
        headers: Headers::from_entries(meta.headers),
        context: Context::from_entries(meta.context),
        retry: meta.retry,
        timeout,
        expires,
        tags,
        trace: meta.trace,
        on_dead: on_dead.map(Box::new),
        on_done: on_done.map(Box::new),
    })
}

/// The retry policy and the expiry in the result of [`pack`], or in its first 64 KiB.
pub fn retry_parts(packed: &[u8]) -> (Option<RetryPolicy>, Option<Expires>) {
    meta(packed).map_or((None, None), |(meta, rest)| (meta.retry, rest.expires))
}

/// The result of [`pack`] without the body, as the outbox keeps it.
pub fn without_body(packed: &[u8]) -> Option<&[u8]> {
    let length = usize::from(u16::from_be_bytes([*packed.first()?, *packed.get(1)?]));
    packed.get(..2 + length)
}

/// What a notice needs of a payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeParts {
    /// Where to send the notice of its death, if the job says so.
    pub on_dead: Option<Callback>,
    /// Where to send the notice of its success, if the job says so.
    pub on_done: Option<Callback>,
    /// The context.
    pub context: Context,
    /// The trace.
    pub trace: Option<Trace>,
}

impl NoticeParts {
    /// Unpacks the result of [`without_body`].
    pub fn unpack(packed: &[u8]) -> Option<Self> {
        let (meta, Rest { on_dead, on_done, .. }) = meta(packed)?;
        Some(Self { on_dead, on_done, context: Context::from_entries(meta.context), trace: meta.trace })
    }
}

/// What comes after the [`Meta`].
#[derive(Default)]
struct Rest {
    on_dead: Option<Callback>,
    on_done: Option<Callback>,
    method: CallbackMethod,
    expires: Option<Expires>,
}

impl Rest {
    /// Reads the fields that few jobs have; `None` if one of them is not known.
    fn with(mut self, mut more: &[u8]) -> Option<Self> {
        while let Some((tag, rest)) = more.split_first() {
            more = match *tag {
                METHOD => {
                    let (number, rest) = rest.split_first()?;
                    self.method = *CallbackMethod::ALL.get(usize::from(*number))?;
                    rest
                }
                EXPIRES_AFTER | EXPIRES_AT => {
                    let (value, rest) = rest.split_first_chunk()?;
                    let value = u64::from_be_bytes(*value);
                    self.expires = Some(if *tag == EXPIRES_AT {
                        Expires::At(Timestamp::from_millis(value))
                    } else {
                        Expires::After(Duration::from_millis(value))
                    });
                    rest
                }
                ON_DONE => {
                    let (length, rest) = rest.split_first_chunk()?;
                    let (url, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
                    self.on_done = Some(Callback::parse(std::str::from_utf8(url).ok()?).ok()?);
                    rest
                }
                _ => return None,
            };
        }
        Some(self)
    }
}

fn meta(packed: &[u8]) -> Option<(Meta, Rest)> {
    let (meta, rest) = postcard::take_from_bytes::<Meta>(without_body(packed)?.get(2..)?).ok()?;
    let mut parts = rest.splitn(2, |byte| *byte == MORE);
    let url = std::str::from_utf8(parts.next()?).ok()?;
    let on_dead = if url.is_empty() { None } else { Some(Callback::parse(url).ok()?) };
    let rest = Rest { on_dead, ..Rest::default() }.with(parts.next().unwrap_or_default())?;
    Some((meta, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_unpacked_as_it_was_packed() {
        let entries = vec![("a".to_owned(), "b".to_owned())];
        let mut delivery = Delivery {
            callback: Callback::parse("https://m.example/notify?x=1").unwrap(),
            method: CallbackMethod::Post,
            body: Body {
                bytes: Bytes::from_static(b"\x00\xffbody"),
                content_type: Some("image/png".to_owned()),
            },
            headers: Headers::parse(entries.clone()).unwrap(),
            context: Context::parse(entries).unwrap(),
            retry: RetryPolicy::preset("default"),
            timeout: Some(Duration::from_secs(3)),
            expires: None,
            tags: Tags::default(),
            trace: Some(Trace { trace_id: [1; 16], parent_id: [2; 8], flags: 1 }),
            on_dead: Some(Box::new(Callback::parse("https://m.example/dead").unwrap())),
            on_done: None,
        };
        let packed = Bytes::from(pack(&delivery));
        let notes = NoticeParts::unpack(without_body(&packed).unwrap()).unwrap();
        assert_eq!(
            (notes.on_dead.map(Box::new), &notes.context),
            (delivery.on_dead.clone(), &delivery.context)
        );
        let back = |packed: &Bytes| {
            let (origin, timeout) = ("https://m.example".to_owned(), Some(Duration::from_secs(3)));
            unpack(packed, origin, timeout, Tags::default())
        };
        assert_eq!(back(&packed).as_ref(), Some(&delivery));
        for method in CallbackMethod::ALL {
            delivery.method = method;
            let with = Bytes::from(pack(&delivery));
            assert_eq!(back(&with).as_ref(), Some(&delivery));
            assert_eq!(with.len() - packed.len(), if method == CallbackMethod::Post { 0 } else { 3 });
        }
        for expires in [Expires::After(Duration::from_secs(5)), Expires::At(Timestamp::from_millis(1 << 41))]
        {
            delivery.expires = Some(expires);
            let with = Bytes::from(pack(&delivery));
            assert_eq!(back(&with).as_ref(), Some(&delivery));
        }
        delivery.on_done = Some(Box::new(Callback::parse("https://m.example/done?x=1").unwrap()));
        let with = Bytes::from(pack(&delivery));
        assert_eq!(back(&with).as_ref(), Some(&delivery));
        let notes = NoticeParts::unpack(without_body(&with).unwrap()).unwrap();
        assert_eq!(notes.on_done.map(Box::new), delivery.on_done);
        (delivery.method, delivery.expires, delivery.on_done) = (CallbackMethod::Get, None, None);
        let mut unknown = pack(&delivery);
        let tag = without_body(&unknown).unwrap().len() - 2;
        unknown[tag] = 9;
        assert_eq!(back(&unknown.into()), None);
        assert_eq!(unpack(&packed.slice(..9), String::new(), None, Tags::default()), None);
    }

    #[test]
    fn a_job_without_a_notice_url_takes_no_bytes_for_it() {
        let body = Body { bytes: Bytes::new(), content_type: None };
        let mut delivery = Delivery::new(Callback::parse("https://m.example/").unwrap(), body);
        let without = pack(&delivery).len();
        let url = "https://m.example/dead";
        delivery.on_dead = Some(Box::new(Callback::parse(url).unwrap()));
        assert_eq!(pack(&delivery).len(), without + url.len());
    }
}
