//! Frames of the protocol of Redis (RESP2 and RESP3): where one ends, and the name of a call.

/// The length in bytes of the first frame; `None` if the frame is incomplete or cannot be read.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let (kind, head) = (bytes[0], end + 2);
    let number = || str::from_utf8(&bytes[1..end]).ok()?.parse::<i64>().ok();
    match kind {
        // A text of a given length, or none.
        b'$' | b'=' | b'!' => match usize::try_from(number()?) {
            Ok(length) => (bytes.len() >= head + length + 2).then_some(head + length + 2),
            Err(_) => Some(head),
        },
        b'*' | b'~' | b'>' => frames(bytes, head, number()?),
        b'%' | b'|' => frames(bytes, head, 2 * number()?),
        // A frame of one line.
        _ => Some(head),
    }
}

fn frames(bytes: &[u8], mut at: usize, count: i64) -> Option<usize> {
    for _ in 0..count {
        at += length(&bytes[at..])?;
    }
    Some(at)
}

fn command(call: &[u8]) -> Option<String> {
    word(call, 0)
}

/// The name of a call: for FCALL that of the script's function, else the command in capitals, with its second word for
/// `FUNCTION LOAD` and `CONFIG`. `None` if the call cannot be read.
pub(super) fn name(call: &[u8]) -> Option<String> {
    let command = command(call)?.to_ascii_uppercase();
    if matches!(command.as_str(), "FUNCTION" | "CONFIG") {
        return Some(format!("{command} {}", word(call, 1)?.to_ascii_uppercase()));
    }
    if command != "FCALL" {
        return Some(command);
    }
    let function = word(call, 1)?;
    // `ringback_`, a digest, and for a call that returns its transitions an ending.
    let name = function.strip_prefix("ringback_")?.split_once('_')?.1;
    Some(name.strip_suffix("_logged").unwrap_or(name).to_owned())
}

/// The word of a call at a place: the command is at 0, the arguments follow. `None` if there is none.
fn word(call: &[u8], place: usize) -> Option<String> {
    let mut at = call.windows(2).position(|pair| pair == b"\r\n")? + 2;
    for _ in 0..place {
        at += length(&call[at..])?;
    }
    let frame = &call[at..at + length(&call[at..])?];
    let head = frame.windows(2).position(|pair| pair == b"\r\n")? + 2;
    Some(String::from_utf8_lossy(frame.get(head..frame.len() - 2)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_complete_with_its_last_byte_and_names_its_script() {
        let call = b"*3\r\n$5\r\nFCALL\r\n$31\r\nringback_0a1b2c3d_submit_logged\r\n$1\r\n1\r\n";
        assert_eq!(length(call), Some(call.len()));
        assert_eq!((0..call.len()).find_map(|end| length(&call[..end])), None);
        assert_eq!((command(call).as_deref(), name(call).as_deref()), (Some("FCALL"), Some("submit")));
        let call = b"*3\r\n$8\r\nfunction\r\n$4\r\nLOAD\r\n$1\r\nx\r\n";
        assert_eq!(name(call).as_deref(), Some("FUNCTION LOAD"));
        assert_eq!(name(b"*2\r\n$3\r\nget\r\n$1\r\nx\r\n").as_deref(), Some("GET"));
    }

    #[test]
    fn answers_of_all_kinds_end_where_they_end() {
        for answer in [
            "+OK\r\n",
            ":1\r\n",
            "$-1\r\n",
            "$0\r\n\r\n",
            "*-1\r\n",
            "*0\r\n",
            "_\r\n",
            "*2\r\n:1\r\n*1\r\n$1\r\na\r\n",
            "%1\r\n+a\r\n:1\r\n",
        ] {
            let more = format!("{answer}+next\r\n");
            assert_eq!(length(more.as_bytes()), Some(answer.len()), "{answer:?}");
        }
    }
}
