//! The temporary file whose bytes become those of a target.
//!
//! Where the system has files without a name (`O_TMPFILE` of Linux), nothing is left of one when its process is killed.
//! Elsewhere, and for the moment in which such a file takes the place of another, a temporary file has a name beside
//! the target. It is locked as long as its process lives: the next one that writes the same target removes those that
//! nobody holds.

use super::{folder_of, naming};
use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Ends the names of temporary files.
const SUFFIX: &str = ".m3part";

/// Bytes of the target's name that are part of a temporary name: the longest names leave no room for more.
const NAME_KEPT: usize = 100;

/// A temporary file.
#[derive(Debug)]
pub(super) struct Part {
    file: File,
    name: Name,
    replaces: bool,
}

#[derive(Debug)]
enum Name {
    /// None: the file is gone with its process.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    None,
    /// Beside the target, removed when dropped.
    Beside(NamedTempFile<()>),
}

/// Why a file is not begun.
pub(super) enum Refused {
    Io(io::Error),
    /// The folder takes no new file.
    Folder(io::Error),
    /// The file belongs to them, and would belong to others.
    Owner(String),
}

/// Temporary files that have a name. Whoever gives names holds the lock around this.
#[derive(Debug)]
pub(super) struct Naming {
    parts: Vec<PathBuf>,
}

impl Naming {
    pub(super) const fn new() -> Naming {
        Naming { parts: Vec::new() }
    }

    pub(super) fn remove_parts(&mut self) {
        for part in self.parts.drain(..) {
            let _ = fs::remove_file(part); // most of them have become files by now
        }
    }

    /// Makes a file beside the target by `make`, under a name that is free.
    fn beside<R>(&mut self, target: &Path, make: impl FnMut(&Path) -> io::Result<R>) -> io::Result<NamedTempFile<R>> {
        let prefix = prefix_of(target);
        let made = tempfile::Builder::new().prefix(&prefix).suffix(SUFFIX).make_in(folder_of(target), make)?;
        self.parts.push(made.path().to_owned());
        Ok(made)
    }
}

impl Part {
    /// Begins the file that will be found at `target`, in place of the one that was there `before`.
    pub(super) fn begin(target: &Path, before: Option<&Metadata>) -> Result<Part, Refused> {
        if let Some(before) = before {
            may_write(target, before).map_err(Refused::Io)?;
        }
        remove_dead(target);
        let (file, name) = match nameless(folder_of(target)) {
            Some(file) => (file, Name::None),
            None => named(target).map_err(Refused::Folder)?,
        };
        let part = Part { file, name, replaces: before.is_some() };
        if let Some(before) = before {
            keep_owner(&part.file, before).map_err(Refused::Owner)?;
            part.file.set_permissions(before.permissions()).map_err(Refused::Io)?;
        }
        Ok(part)
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Brings the bytes to the disk, so that only the name is still to be given.
    pub(super) fn seal(&mut self, target: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        if self.replaces { self.take_name(target, &mut naming()) } else { Ok(()) }
    }

    /// Gives the file its name.
    pub(super) fn appear(mut self, target: &Path, naming: &mut Naming) -> io::Result<()> {
        let linked = matches!(self.name, Name::None) && link(&self.file, target).is_ok();
        if !linked {
            // There is a file under that name, from before or since this one was begun.
            self.take_name(target, naming)?;
            if let Name::Beside(name) = self.name {
                name.persist(target).map_err(|e| e.error)?;
            }
        }
        // The new name is safe once the folder is; where folders cannot be synced there is nothing to add.
        if let Ok(folder) = File::open(folder_of(target)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Gives a file without a name one beside the target: only a file with a name can take the place of another.
    fn take_name(&mut self, target: &Path, naming: &mut Naming) -> io::Result<()> {
        if matches!(self.name, Name::None) {
            self.name = Name::Beside(naming.beside(target, |path| link(&self.file, path))?);
        }
        Ok(())
    }
}

/// Temporary files of a target begin with this.
fn prefix_of(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let end = (0..=NAME_KEPT.min(name.len())).rfind(|&at| name.is_char_boundary(at)).unwrap_or(0);
    format!(".{}.", &name[..end])
}

/// A file without a name, where the system has such files and can name them later.
#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?); // less the umask
    if !descriptor(&file).exists() {
        return None; // without /proc it could not be named
    }
    let _ = file.try_lock(); // nobody else knows it yet
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_folder: &Path) -> Option<File> {
    None
}

#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Names a file that has no name.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, descriptor(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A locked file with a name beside the target.
fn named(target: &Path) -> io::Result<(File, Name)> {
    loop {
        let make = |path: &Path| fs::OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let (file, path) = naming().beside(target, make)?.into_parts();
        let name = NamedTempFile::from_parts((), path);
        // Another process may have taken it for that of a dead one before it was locked: then there must be a new one.
        if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && name.path().exists() {
            return Ok((file, Name::Beside(name)));
        }
    }
}

/// Removes temporary files of the target whose processes are dead: nobody locks them any more.
fn remove_dead(target: &Path) {
    let prefix = prefix_of(target);
    let Ok(entries) = fs::read_dir(folder_of(target)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&prefix) && name.ends_with(SUFFIX) && is_dead(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_dead(part: &Path) -> bool {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // Whatever stands there under such a name, opening it does not wait and does not lead elsewhere.
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    }
    options.open(part).is_ok_and(|file| file.metadata().is_ok_and(|m| m.is_file()) && file.try_lock().is_ok())
}

/// A file one may not write is not replaced either, though the folder would allow it.
fn may_write(target: &Path, before: &Metadata) -> io::Result<()> {
    if before.permissions().readonly() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    #[cfg(unix)]
    rustix::fs::access(target, rustix::fs::Access::WRITE_OK)?;
    #[cfg(not(unix))]
    let _ = target;
    Ok(())
}

/// Gives a new file the owner and group of the one it replaces; says who they are, where that is not allowed.
#[cfg(unix)]
fn keep_owner(file: &File, before: &Metadata) -> Result<(), String> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let owner = || format!("user {}, group {}", before.uid(), before.gid());
    let now = file.metadata().map_err(|_| owner())?;
    let user = (now.uid() != before.uid()).then_some(before.uid());
    let group = (now.gid() != before.gid()).then_some(before.gid());
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    fchown(file, user, group).map_err(|_| owner())
}

#[cfg(not(unix))]
fn keep_owner(_file: &File, _before: &Metadata) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A temporary file with a name, as on a system that has none without.
    fn part(target: &Path) -> Part {
        let (file, name) = named(target).unwrap();
        Part { file, name, replaces: target.exists() }
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_temporary_file_with_a_name_takes_that_of_the_target_and_none_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        for bytes in ["first", "again"] {
            let mut part = part(&target);
            io::Write::write_all(&mut part.file(), bytes.as_bytes()).unwrap();
            part.seal(&target).unwrap();
            part.appear(&target, &mut naming()).unwrap();
            assert_eq!((fs::read_to_string(&target).unwrap().as_str(), names(folder.path())), (bytes, 1));
        }
        drop(part(&target));
        assert_eq!(names(folder.path()), 1);
    }

    #[test]
    fn what_the_dead_left_for_a_target_is_removed_and_what_the_living_write_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        let living = part(&target);
        let left = [".a.csv.dead00.m3part", ".a.csv.b.m3part", ".b.csv.dead00.m3part", "a.csv.m3part"];
        left.iter().for_each(|name| fs::write(folder.path().join(name), "half").unwrap());
        remove_dead(&target);
        let there: Vec<bool> = left.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(there, [false, false, true, true]);
        assert_eq!(names(folder.path()), 3);
        drop(living);
    }

    #[test]
    fn a_program_that_ends_takes_its_temporary_files_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        let mut naming = Naming::new();
        let make = |path: &Path| File::create_new(path);
        std::mem::forget(naming.beside(&target, make).unwrap());
        assert_eq!(names(folder.path()), 1);
        naming.remove_parts();
        assert_eq!(names(folder.path()), 0);
    }
}
