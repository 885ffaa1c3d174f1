//! The master key of an embedded store, for who sets none: a file beside the store, made at the first start. It keeps
//! secrets out of exports and backups; whoever can read the directory can open them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use ringback_secrets::MasterKeys;
use ringback_service::random;

const NAME: &str = "master.keys";
/// The id of the key that is made.
const ID: &str = "local";

/// The keys in the directory of a store; they are made if there are none. No keys if the store is not embedded, or no
/// file can be made.
pub(super) fn of_store(url: &str) -> anyhow::Result<MasterKeys> {
    let Some(directory) = url.strip_prefix("embedded:") else { return Ok(MasterKeys::default()) };
    let path = PathBuf::from(directory).join(NAME);
    match fs::read_to_string(&path) {
        Ok(text) => parse(&path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match make(directory.as_ref(), &path) {
            Ok(keys) => Ok(keys),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "no master key can be stored, so topics cannot have secrets");
                Ok(MasterKeys::default())
            }
        },
        Err(error) => {
            Err(error).with_context(|| format!("cannot read the master keys in {}", path.display()))
        }
    }
}

/// Makes a key. The file has its name only once it is whole.
fn make(directory: &Path, path: &Path) -> anyhow::Result<MasterKeys> {
    fs::create_dir_all(directory)?;
    let text = MasterKeys::generate(ID, &mut random::generator());
    let part = path.with_extension("keys.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    fs::File::open(directory)?.sync_all()?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> anyhow::Result<MasterKeys> {
    text.parse().map_err(|why: String| anyhow!("the master keys in {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_can_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("embedded:{}/new", directory.path().display());
        let keys = of_store(&url).unwrap();
        let sealed = keys.seal("name", b"secret", &mut random::generator()).unwrap();
        assert_eq!(of_store(&url).unwrap().open("name", &sealed).unwrap().as_slice(), b"secret");
        let path = directory.path().join("new").join(NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!fs::read_to_string(&path).unwrap().contains("secret"));
    }

    #[test]
    fn a_damaged_file_is_refused_and_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        fs::write(&path, "local:AAAA").unwrap();
        let error = of_store(&format!("embedded:{}", directory.path().display())).unwrap_err().to_string();
        assert!(error.contains("master.keys") && !error.contains("AAAA"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "local:AAAA");
    }

    #[test]
    fn a_redis_has_no_file() {
        assert_eq!(of_store("redis://127.0.0.1:6379").unwrap().current(), None);
    }
}
