//! The master key of an embedded store, if none is set: a file beside the store, made at the first start. It keeps
//! secrets out of exports and backups; whoever can read the directory can open them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use rand::Rng as _;
use ringback_secrets::MasterKeys;
use ringback_service::random;
use ringback_store::EMBEDDED_SCHEME;

const NAME: &str = "master.keys";
/// The prefix of the id of a generated key. A random part follows, so that the keys of two stores have two ids.
const ID: &str = "local-";

/// The keys in the directory of an embedded store; one is made if there is no file. No keys for any other store, or,
/// with a warning in the log, if no file can be made. Fails if the file cannot be read or has no valid key.
pub(super) fn of_store(url: &str) -> anyhow::Result<MasterKeys> {
    let Some(directory) = url.strip_prefix(EMBEDDED_SCHEME) else { return Ok(MasterKeys::default()) };
    let path = Path::new(directory).join(NAME);
    if let Some(keys) = read(&path)? {
        return Ok(keys);
    }
    if let Err(error) = make(directory.as_ref(), &path) {
        tracing::warn!(path = %path.display(), %error, "no master key can be stored, so topics cannot have secrets");
        return Ok(MasterKeys::default());
    }
    // Another process may have been first.
    Ok(read(&path)?.unwrap_or_default())
}

/// The keys in a file; `None` if there is no file. Fails if it cannot be read or has no valid key.
fn read(path: &Path) -> anyhow::Result<Option<MasterKeys>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.with_context(|| format!("cannot read the master keys in {}", path.display()))?,
    };
    let keys = text.parse::<MasterKeys>().and_then(|keys| match keys.current() {
        Some(_) => Ok(keys),
        None => {
            Err("there is none; bring the file back from a copy, or remove it if no topic has secrets"
                .to_owned())
        }
    });
    keys.map(Some).map_err(|why| anyhow!("the master keys in {}: {why}", path.display()))
}

/// Makes the directory, and a file in it with a new key that only its owner can read. The file gets its name once it is
/// complete; a file with that name that is there already stays.
fn make(directory: &Path, path: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut rng = random::generator();
    let unique = format!("{:08x}", rng.next_u32());
    let id = format!("{ID}{unique}");
    let text = MasterKeys::generate(&id, &mut rng);
    let part = directory.join(format!("{NAME}.{unique}"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&part, path));
    fs::remove_file(&part)?;
    match linked {
        Ok(()) => {
            tracing::info!(path = %path.display(), master_key = id, "made a master key for the secrets of topics");
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    fs::File::open(directory)?.sync_all()
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
    fn processes_that_start_together_have_the_same_key() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().unwrap();
            let url = format!("embedded:{}", directory.path().display());
            let starts: Vec<_> = (0..4)
                .map(|_| {
                    let url = url.clone();
                    std::thread::spawn(move || of_store(&url).unwrap())
                })
                .collect();
            let all: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
            let sealed = all[0].seal("name", b"secret", &mut random::generator()).unwrap();
            assert!(all.iter().all(|keys| keys.open("name", &sealed).is_ok()), "{all:?}");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left");
        }
    }

    #[test]
    fn two_stores_have_keys_that_one_process_can_have() {
        let made = || {
            let directory = tempfile::tempdir().unwrap();
            of_store(&format!("embedded:{}", directory.path().display())).unwrap();
            fs::read_to_string(directory.path().join(NAME)).unwrap()
        };
        assert!(format!("{} {}", made(), made()).parse::<MasterKeys>().is_ok());
    }

    #[test]
    fn a_damaged_file_is_refused_and_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        for damaged in ["local:AAAA", "", "\n"] {
            fs::write(&path, damaged).unwrap();
            let error =
                of_store(&format!("embedded:{}", directory.path().display())).unwrap_err().to_string();
            assert!(error.contains("master.keys") && !error.contains("AAAA"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
        }
    }

    #[test]
    fn a_redis_has_no_file() {
        assert_eq!(of_store("redis://127.0.0.1:6379").unwrap().current(), None);
    }
}
