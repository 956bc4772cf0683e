//! Files that are there whole or not at all.

use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that takes its name only when it is complete.
///
/// Bytes go to a temporary file beside the target, which [`commit`](AtomicFile::commit) renames. Dropped without, the
/// temporary file is removed and the target is as it was.
///
/// ```no_run
/// use std::io::Write;
/// let mut file = m3impute_io::AtomicFile::create("filled.csv".as_ref())?;
/// file.write_all(b"a\n1\n").unwrap();
/// file.commit()?;
/// # Ok::<(), m3impute_io::Error>(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Beside(BufWriter<NamedTempFile>),
    /// A device or a pipe has no state to keep whole, and must not be renamed over.
    Device(BufWriter<File>),
}

impl AtomicFile {
    /// Begins a file.
    ///
    /// # Errors
    /// When the target is a folder, or its folder is not there or cannot be written.
    pub fn create(target: &Path) -> Result<AtomicFile> {
        let failed = |source| Error::Write { file: target.display().to_string(), source };
        // A link stays a link: the file it leads to is replaced.
        let real = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let before = fs::metadata(&real).ok();
        let bytes = match &before {
            Some(there) if there.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            Some(there) if !there.is_file() => {
                Bytes::Device(BufWriter::new(fs::OpenOptions::new().write(true).open(&real).map_err(failed)?))
            }
            // A file one may not write is not replaced either, though the folder would allow it.
            Some(there) if there.permissions().readonly() => {
                return Err(failed(io::ErrorKind::PermissionDenied.into()));
            }
            _ => Bytes::Beside(BufWriter::with_capacity(1 << 16, beside(&real, before.as_ref()).map_err(failed)?)),
        };
        Ok(AtomicFile { target: real, bytes })
    }

    /// Brings the bytes to the disk and gives the file its name.
    ///
    /// # Errors
    /// When the disk is full or the name cannot be given; the target is then as it was.
    pub fn commit(self) -> Result<()> {
        let failed = |source| Error::Write { file: self.target.display().to_string(), source };
        match self.bytes {
            Bytes::Device(mut device) => device.flush().map_err(failed),
            Bytes::Beside(buffer) => {
                let file = buffer.into_inner().map_err(|e| failed(e.into_error()))?;
                file.as_file().sync_all().map_err(failed)?;
                file.persist(&self.target).map_err(|e| failed(e.error))?;
                // The new name is safe once the folder is; where folders cannot be synced there is nothing to add.
                if let Ok(folder) = File::open(folder_of(&self.target)) {
                    let _ = folder.sync_all();
                }
                Ok(())
            }
        }
    }

    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("`{}`: {error}", self.target.display()))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.bytes {
            Bytes::Beside(file) => file.write(bytes),
            Bytes::Device(file) => file.write(bytes),
        };
        written.map_err(|e| self.named(e))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.bytes {
            Bytes::Beside(file) => file.flush(),
            Bytes::Device(file) => file.flush(),
        };
        flushed.map_err(|e| self.named(e))
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A temporary file beside the target, with the permissions of the file it will replace, or those of any new file.
fn beside(target: &Path, before: Option<&fs::Metadata>) -> io::Result<NamedTempFile> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    let prefix = format!(".{name}.");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666)); // less the umask
    }
    let file = builder.tempfile_in(folder_of(target))?;
    if let Some(before) = before {
        file.as_file().set_permissions(before.permissions())?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn dropped_it_leaves_the_old_file_whole_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        fs::write(&target, "old").unwrap();
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"half of the new").unwrap();
        file.flush().unwrap();
        drop(file);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.csv"]);
    }

    #[test]
    fn committed_it_replaces_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        fs::write(&target, "old").unwrap();
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.csv"]);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_are_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("a.csv"), folder.path().join("link.csv"));
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut file = AtomicFile::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_and_stays_a_device() {
        let mut file = AtomicFile::create(Path::new("/dev/null")).unwrap();
        file.write_all(b"gone").unwrap();
        file.commit().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_with_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("no/such/a.csv");
        let error = AtomicFile::create(&target).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot write `{}`: no such file or folder", target.display()));
        let error = AtomicFile::create(folder.path()).unwrap_err();
        assert!(error.to_string().ends_with("it is a folder"));
    }
}
