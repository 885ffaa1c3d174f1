//! Normalises the first line of a response of HTTP/1 from forms that some servers write and other clients accept, since
//! the library only accepts the exact form of `HTTP/1.1 200`. Pure.

/// The start of nearly all responses.
const USUAL: &[u8] = b"HTTP/1.1 ";
const NAME: &[u8] = b"HTTP/";
/// The longest start that is looked at.
const LONGEST: usize = 32;

/// The start of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start {
    Usual,
    /// More of it must come first.
    Short,
    /// The bytes to use in its place.
    Other(Vec<u8>),
}

pub(super) fn look(start: &[u8]) -> Start {
    if start.starts_with(USUAL) && start.get(USUAL.len()).is_some_and(u8::is_ascii_digit) {
        return Start::Usual;
    }
    let known = start.len().min(NAME.len());
    if !start[..known].eq_ignore_ascii_case(&NAME[..known]) {
        return Start::Usual;
    }
    let Some(first) = first_of_status(start) else {
        let is_over = start.len() >= LONGEST || start.contains(&b'\n');
        return if is_over { Start::Usual } else { Start::Short };
    };
    let version = start[NAME.len()..first].trim_ascii_end();
    match version {
        // HTTP/1.0 says nothing of `Transfer-Encoding`, which some of its servers send.
        b"1.0" | b"1.1" | b"2" | b"2.0" => Start::Other([USUAL, &start[first..]].concat()),
        _ => Start::Usual,
    }
}

/// Whether a response with this start ends its connection: it is not of HTTP/1.1.
pub(super) fn is_last(start: &[u8]) -> bool {
    start.get(NAME.len()..NAME.len() + 3) != Some(b"1.1")
}

/// The index at which the status begins; `None` if there is no status yet.
fn first_of_status(start: &[u8]) -> Option<usize> {
    let space = start.iter().position(|byte| *byte == b' ')?;
    Some(space + start[space..].iter().position(|byte| *byte != b' ')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_clients_take_is_taken_and_all_else_is_left_to_the_library() {
        let other = |text: &str| Start::Other(text.into());
        for (start, expected) in [
            ("HTTP/1.1 200 OK\r\n", Start::Usual),
            ("HTTP/1.0 200 OK\r\n", other("HTTP/1.1 200 OK\r\n")),
            ("http/1.1 200 OK\r\n", other("HTTP/1.1 200 OK\r\n")),
            ("HTTP/1.1   200\n", other("HTTP/1.1 200\n")),
            ("HTTP/2 200 \r\nx", other("HTTP/1.1 200 \r\nx")),
            ("HTTP/1.2 200 OK\r\n", Start::Usual),
            ("HTTP/1.1\n", Start::Usual),
            ("SSH-2.0-x\r\n", Start::Usual),
            ("<html>", Start::Usual),
            ("", Start::Short),
            ("H", Start::Short),
            ("http/1", Start::Short),
            ("HTTP/1.1 ", Start::Short),
            ("HTTP/1.1  ", Start::Short),
            (&format!("HTTP/1.1{}", " ".repeat(40)), Start::Usual),
        ] {
            assert_eq!(look(start.as_bytes()), expected, "{start:?}");
        }
        assert!(is_last(b"HTTP/1.0 200 OK") && !is_last(b"http/1.1 200"));
    }

    #[test]
    fn random_starts_are_left_alone_or_replaced_by_the_usual_one() {
        let samples = ["HTTP/1.0 200 OK\r\n", "http/1.1  503\r\n", "HTTP/2 200 \r\n", "SSH-2.0"];
        ringback_fuzz::run(&samples, |bytes| {
            if let Start::Other(other) = look(bytes) {
                assert!(other.starts_with(USUAL) && look(&other) != Start::Short);
            }
        });
    }
}
