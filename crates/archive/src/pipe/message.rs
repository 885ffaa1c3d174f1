//! Messages on a pipe, sent and received: the length in 4 bytes, and postcard.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest message, in bytes.
const MAX_MESSAGE: u32 = 256 * 1024 * 1024;

pub(super) async fn send(
    pipe: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> std::io::Result<()> {
    let packed = postcard::to_stdvec(message).map_err(std::io::Error::other)?;
    let length = u32::try_from(packed.len()).ok().filter(|length| *length <= MAX_MESSAGE);
    let length = length.ok_or_else(|| std::io::Error::other("a message is too long"))?;
    pipe.write_all(&length.to_be_bytes()).await?;
    pipe.write_all(&packed).await?;
    pipe.flush().await
}

/// The next message; `None` if the pipe ends before it, or within its length.
pub(super) async fn receive<T: DeserializeOwned>(
    pipe: &mut (impl AsyncRead + Unpin),
) -> std::io::Result<Option<T>> {
    let mut length = [0; 4];
    match pipe.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_be_bytes(length);
    if length > MAX_MESSAGE {
        return Err(std::io::Error::other("a message is too long"));
    }
    let mut packed = vec![0; length as usize];
    pipe.read_exact(&mut packed).await?;
    postcard::from_bytes(&packed).map(Some).map_err(std::io::Error::other)
}
