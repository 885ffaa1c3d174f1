//! The payload of a stored job, packed the same by both backends: path, method, headers, context, retry policy, expiry,
//! trace, URLs for notices, and body. No transition reads it.
//!
//! Layout: the length of the meta part (2 bytes), the meta part, the body. The meta part is postcard, whose format is
//! specified and stable. Its first byte is 1 if the body is compressed; then the last four bytes are its size as sent.

mod compression;

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::job::{
    Body, Callback, CallbackMethod, Context, Delivery, Expires, Headers, MAX_BODY, Tags, Trace,
};
use crate::retry::RetryPolicy;

#[derive(Serialize, Deserialize)]
struct Meta {
    /// The first field, so that its byte has a fixed place.
    is_compressed: bool,
    path: String,
    method: CallbackMethod,
    content_type: Option<String>,
    headers: Vec<(String, String)>,
    context: Vec<(String, String)>,
    retry: Option<RetryPolicy>,
    expires: Option<Expires>,
    trace: Option<Trace>,
    /// URLs for notices.
    on_dead: Option<String>,
    on_done: Option<String>,
}

/// Packs a delivery without its origin, timeout and tags, which stores keep beside it. The body is compressed if that
/// saves a quarter.
pub fn pack(delivery: &Delivery) -> Vec<u8> {
    pack_with(delivery, compression::compress(&delivery.body.bytes).as_deref())
}

/// Does the same without compression: the size of the result bounds what a reader needs.
pub fn pack_as_sent(delivery: &Delivery) -> Vec<u8> {
    pack_with(delivery, None)
}

fn pack_with(delivery: &Delivery, compressed: Option<&[u8]>) -> Vec<u8> {
    let body = compressed.unwrap_or(&delivery.body.bytes);
    let meta = Meta {
        is_compressed: compressed.is_some(),
        path: delivery.callback.path().to_owned(),
        method: delivery.method,
        content_type: delivery.body.content_type.clone(),
        headers: delivery.headers.entries().to_vec(),
        context: delivery.context.entries().to_vec(),
        retry: delivery.retry.clone(),
        expires: delivery.expires,
        trace: delivery.trace,
        on_dead: delivery.on_dead.as_ref().map(ToString::to_string),
        on_done: delivery.on_done.as_ref().map(ToString::to_string),
    };
    let meta = postcard::to_stdvec(&meta).expect("plain data always serialises");
    let length =
        u16::try_from(meta.len()).expect("headers, context, policy and URLs have limits below 64 KiB");
    [&length.to_be_bytes()[..], &meta, body].concat()
}

/// Unpacks the result of [`pack`], with what is stored beside it; `None` if it cannot be read.
pub fn unpack(packed: &Bytes, origin: String, timeout: Option<Duration>, tags: Tags) -> Option<Delivery> {
    let meta = meta(packed)?;
    let body = packed.slice(without_body(packed)?.len()..);
    let bytes = if meta.is_compressed { compression::decompress(&body)? } else { body };
    Some(Delivery {
        // Both are empty for a pull job.
        callback: Callback::from_parts(origin, meta.path),
        method: meta.method,
        body: Body { bytes, content_type: meta.content_type },
        headers: Headers::from_entries(meta.headers),
        context: Context::from_entries(meta.context),
        retry: meta.retry,
        timeout,
        expires: meta.expires,
        tags,
        trace: meta.trace,
        on_dead: callback(meta.on_dead)?.map(Box::new),
        on_done: callback(meta.on_done)?.map(Box::new),
    })
}

/// The size of the body as sent in the result of [`pack`], if the body is compressed; else 0. At most [`MAX_BODY`], also
/// in damaged bytes.
pub fn decompressed_size(packed: &[u8]) -> usize {
    let size = || compression::size(packed).map(|size| size.min(MAX_BODY));
    packed.get(2).filter(|flag| **flag == 1).and_then(|_| size()).unwrap_or(0)
}

/// The bytes of the result of [`pack`] and of the body that it is decompressed to: what reading a job takes.
pub fn weight(packed: &[u8]) -> usize {
    packed.len() + decompressed_size(packed)
}

/// The retry policy and the expiry in the result of [`pack`], or in its first 64 KiB; neither if that is damaged.
pub fn retry_parts(packed: &[u8]) -> (Option<RetryPolicy>, Option<Expires>) {
    meta(packed).map_or((None, None), |meta| (meta.retry, meta.expires))
}

/// The result of [`pack`] without the body, as the outbox keeps it; `None` if it is too short.
pub fn without_body(packed: &[u8]) -> Option<&[u8]> {
    let length = usize::from(u16::from_be_bytes([*packed.first()?, *packed.get(1)?]));
    packed.get(..2 + length)
}

/// The parts of a payload that a notice needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeParts {
    /// Where to send the notice of its death, if the job says so.
    pub on_dead: Option<Callback>,
    /// Where to send the notice of its success, if the job says so.
    pub on_done: Option<Callback>,
    pub context: Context,
    pub trace: Option<Trace>,
}

impl NoticeParts {
    /// Unpacks the result of [`without_body`]; `None` if it cannot be read.
    pub fn unpack(packed: &[u8]) -> Option<Self> {
        let meta = meta(packed)?;
        Some(Self {
            on_dead: callback(meta.on_dead)?,
            on_done: callback(meta.on_done)?,
            context: Context::from_entries(meta.context),
            trace: meta.trace,
        })
    }
}

/// Parses the URL for a notice. `None` if it is not valid, `Some(None)` if there is none.
fn callback(url: Option<String>) -> Option<Option<Callback>> {
    url.map(|url| Callback::parse(&url)).transpose().ok()
}

fn meta(packed: &[u8]) -> Option<Meta> {
    let (meta, rest) = postcard::take_from_bytes(without_body(packed)?.get(2..)?).ok()?;
    rest.is_empty().then_some(meta)
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;
    use crate::clock::Timestamp;

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
        for &method in CallbackMethod::VARIANTS {
            delivery.method = method;
            let with = Bytes::from(pack(&delivery));
            assert_eq!(back(&with).as_ref(), Some(&delivery));
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
        assert_eq!(unpack(&packed.slice(..9), String::new(), None, Tags::default()), None);
        assert_eq!(weight(&packed), packed.len());
        delivery.body.bytes = vec![b'x'; 2000].into();
        let with = Bytes::from(pack(&delivery));
        assert_eq!(back(&with).as_ref(), Some(&delivery));
        assert!(with.len() < 500 && weight(&with) == with.len() + 2000);
        delivery.body.bytes = Bytes::new();
        let without = Bytes::copy_from_slice(without_body(&with).unwrap());
        assert_eq!(back(&without).as_ref(), Some(&delivery), "a body that was left out is empty");
        assert_eq!(unpack(&with.slice(..with.len() - 5), String::new(), None, Tags::default()), None);
    }
}
