//! Which file a path leads to.

use crate::atomic::followed;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A regular file, by whatever path or descriptor it is reached; it need not be there yet.
///
/// ```
/// use m3impute_io::FileId;
/// let id = |path: &str| FileId::of_path(path.as_ref());
/// assert!(id("./new.csv").is_some() && id("./new.csv") == id("new.csv"));
/// assert_ne!(id("new.csv"), id("old.csv"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileId(Id);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Id {
    #[cfg_attr(not(unix), allow(dead_code))]
    Inode {
        device: u64,
        inode: u64,
    },
    Path(PathBuf),
}

impl FileId {
    /// The file that a path leads to; none where that is a device, a pipe or a folder.
    pub fn of_path(path: &Path) -> Option<FileId> {
        match fs::metadata(path) {
            Ok(there) if !there.is_file() => None,
            Ok(there) => FileId::of(&there).or_else(|| Some(FileId(Id::Path(followed(path).ok()?)))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Some(FileId(Id::Path(followed(path).ok()?))),
            Err(_) => None,
        }
    }

    /// The file behind an open descriptor, under the same condition.
    pub fn of_file(file: &File) -> Option<FileId> {
        file.metadata().ok().filter(Metadata::is_file).and_then(|there| FileId::of(&there))
    }

    /// The file that standard input comes from, where it is one.
    #[cfg(unix)]
    pub fn of_stdin() -> Option<FileId> {
        FileId::of_descriptor(&io::stdin())
    }

    /// The file that standard output goes to, where it is one.
    #[cfg(unix)]
    pub fn of_stdout() -> Option<FileId> {
        FileId::of_descriptor(&io::stdout())
    }

    #[cfg(unix)]
    fn of_descriptor(open: &impl std::os::fd::AsFd) -> Option<FileId> {
        FileId::of_file(&File::from(open.as_fd().try_clone_to_owned().ok()?))
    }

    /// Unknown on this system.
    #[cfg(not(unix))]
    pub fn of_stdin() -> Option<FileId> {
        None
    }

    /// Unknown on this system.
    #[cfg(not(unix))]
    pub fn of_stdout() -> Option<FileId> {
        None
    }

    #[cfg(unix)]
    fn of(there: &Metadata) -> Option<FileId> {
        use std::os::unix::fs::MetadataExt;
        Some(FileId(Id::Inode { device: there.dev(), inode: there.ino() }))
    }

    #[cfg(not(unix))]
    fn of(_there: &Metadata) -> Option<FileId> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_paths_of_one_file_are_known_as_such_also_before_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let same = |one: &str, other: &str| FileId::of_path(&at(one)).unwrap() == FileId::of_path(&at(other)).unwrap();
        fs::write(at("a.csv"), "").unwrap();
        fs::create_dir(at("sub")).unwrap();
        assert!(same("a.csv", "sub/../a.csv"));
        assert!(same("new.csv", "sub/../new.csv") && !same("new.csv", "sub/new.csv") && !same("a.csv", "new.csv"));
        assert_eq!(FileId::of_path(&at("sub")), None);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_descriptors_lead_to_the_same_file_and_devices_to_none() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.csv"), "").unwrap();
        fs::hard_link(at("a.csv"), at("hard.csv")).unwrap();
        std::os::unix::fs::symlink("new.csv", at("link.csv")).unwrap();
        let id = |name: &str| FileId::of_path(&at(name)).unwrap();
        assert_eq!((id("a.csv"), id("link.csv")), (id("hard.csv"), id("new.csv")));
        assert_eq!(FileId::of_file(&File::open(at("a.csv")).unwrap()), Some(id("a.csv")));
        assert_eq!(FileId::of_path(Path::new("/dev/null")), None);
    }
}
