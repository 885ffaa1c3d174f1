//! The container image by its Dockerfile: its user may write where `ringback up` keeps jobs by default, and that
//! folder is in a volume.

use std::path::{Component, Path, PathBuf};

use crate::files::{read, root};

/// Where the image runs its command, and who owns which folders.
#[derive(Debug, Default)]
struct Image {
    user: String,
    workdir: PathBuf,
    volumes: Vec<PathBuf>,
    /// Folders and their owners, in the order in which they are made.
    owned: Vec<(PathBuf, String)>,
    /// The number of folders that were owned when each volume was declared.
    owned_before: Vec<usize>,
}

impl Image {
    /// Parses the last stage of a Dockerfile.
    fn parse(dockerfile: &str) -> Self {
        let lines: String = dockerfile.lines().filter(|line| !line.trim_start().starts_with('#')).fold(
            String::new(),
            |lines, line| match line.strip_suffix('\\') {
                Some(part) => lines + part,
                None => lines + line + "\n",
            },
        );
        let stage = lines.rfind("FROM ").map_or("", |at| &lines[at..]);
        let mut image = Self { user: "root".to_owned(), workdir: "/".into(), ..Self::default() };
        for (instruction, rest) in stage.lines().filter_map(|line| line.split_once(' ')) {
            match instruction {
                "USER" => image.user = rest.trim().to_owned(),
                "WORKDIR" => image.workdir = image.workdir.join(rest.trim()),
                "VOLUME" => {
                    image.volumes.push(rest.trim().trim_matches(['[', ']', '"']).into());
                    image.owned_before.push(image.owned.len());
                }
                "COPY" => image.copy(rest),
                "RUN" => rest.split("&&").for_each(|command| image.run(command)),
                _ => {}
            }
        }
        image
    }

    /// Records the owner of the folder in `COPY --chown=USER … FOLDER/`.
    fn copy(&mut self, rest: &str) {
        let owner = rest.split_whitespace().find_map(|word| word.strip_prefix("--chown="));
        let folder = rest.split_whitespace().last().filter(|folder| folder.ends_with('/'));
        if let (Some(owner), Some(folder)) = (owner, folder) {
            self.owned.push((folder.into(), name(owner)));
        }
    }

    /// Records the owner of the folder in `install -d -o USER FOLDER` or `chown USER FOLDER`.
    fn run(&mut self, command: &str) {
        let words: Vec<_> = command.split_whitespace().collect();
        let after = |flag: &str| words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1));
        let owner = match words.first() {
            Some(&"install") if words.contains(&"-d") => after("-o").or(after("--owner")).copied(),
            Some(&"chown") => words[1..].iter().find(|word| !word.starts_with('-')).copied(),
            _ => None,
        };
        if let (Some(owner), Some(folder)) = (owner, words.last()) {
            self.owned.push((folder.into(), name(owner)));
        }
    }

    /// Why the image's user cannot write below a folder, or why that is lost with the container; `None` if all is well.
    fn refuses(&self, folder: &Path) -> Option<String> {
        let Some(volume) = self.volumes.iter().position(|volume| folder.starts_with(volume)) else {
            return Some(format!("{} is in no volume of {:?}", folder.display(), self.volumes));
        };
        let volume_of = &self.volumes[volume];
        // A volume gets the owner that its folder has when it is declared.
        let owned = &self.owned[..self.owned_before[volume]];
        let owner = owned.iter().rev().find(|(owned, _)| owned == volume_of).map(|(_, owner)| owner);
        (owner != Some(&self.user))
            .then(|| format!("{} of {owner:?} is not of {}", volume_of.display(), self.user))
    }
}

/// The user in `USER` or `USER:GROUP`.
fn name(owner: &str) -> String {
    owner.split(':').next().unwrap_or_default().to_owned()
}

/// The folder of the default store of `ringback up`, from its source.
fn default_folder() -> PathBuf {
    let settings = read(&root().join("crates/cli/src/up/config.rs"));
    let store = settings.split("\"embedded:").nth(1).and_then(|rest| rest.split('"').next());
    store.expect("an embedded store by default").into()
}

#[test]
fn the_user_of_the_image_can_write_the_default_store_and_it_is_in_a_volume() {
    let image = Image::parse(&read(&root().join("deploy/Dockerfile")));
    assert_eq!(image.user, "ringback", "it would run as root");
    let folder = image.workdir.join(default_folder());
    let folder: PathBuf = folder.components().filter(|part| *part != Component::CurDir).collect();
    assert_eq!(image.refuses(&folder), None, "{image:?}");
    assert!(image.refuses(Path::new("/ringback-data")).is_some());
}

#[test]
fn an_image_whose_user_cannot_write_is_noticed() {
    let refuses = |dockerfile: &str| Image::parse(dockerfile).refuses(Path::new("/data/x"));
    let good = "FROM a AS build\nRUN true\nFROM b\nRUN useradd app \\\n && install -d -o app /data\nVOLUME /data\nUSER app";
    assert_eq!(refuses(good), None);
    assert_eq!(refuses("FROM b\nCOPY --chown=app:app empty/ /data/\nVOLUME [\"/data\"]\nUSER app"), None);
    for bad in [
        "FROM b\nVOLUME /data\nUSER app",
        "FROM b\nRUN install -d -o app /data\nUSER app",
        "FROM b\nRUN install -d /data\nVOLUME /data\nUSER app",
        "FROM b\nVOLUME /data\nRUN chown app /data\nUSER app",
        "FROM b\nRUN install -d -o app /data\nVOLUME /data",
        "FROM a\nRUN install -d -o app /data\nFROM b\nVOLUME /data\nUSER app",
    ] {
        assert!(refuses(bad).is_some(), "{bad}");
    }
}
