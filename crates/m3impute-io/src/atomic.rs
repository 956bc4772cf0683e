//! Files that are there whole or not at all.

mod part;

use crate::error::{Error, Left, Result};
use part::{Naming, Part, Refused};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that are gathered before the system is asked to write them.
const BUFFER: usize = 1 << 18;

/// Links that are followed from one to the next, as many as Linux does.
const LINKS: usize = 40;

/// What standard output is called in messages.
pub(crate) const STDOUT: &str = "stdout";

/// A file that takes its name only when it is complete.
///
/// Bytes go to a file without a name, or to one beside the target where the system has no such files;
/// [`commit`](AtomicFile::commit) gives it the name of the target. Dropped without, nothing is left of it and the target
/// is as it was. A file that is replaced keeps its owner, group and mode, and links that lead to it stay links; where
/// that cannot be done, nothing is replaced. Other hard links of it keep the old bytes.
///
/// A pipe, a device and standard output have no state to keep whole: they are written as bytes come.
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
    /// What messages call it: the path that was asked for.
    name: String,
    bytes: BufWriter<Bytes>,
    /// The first failure to write. Writers of formats wrap errors in their own, so it is kept here.
    failed: Option<io::Error>,
}

#[derive(Debug)]
enum Bytes {
    /// The bytes, and the path that they will be found at: that of the target, after its links.
    Whole {
        part: Part,
        target: PathBuf,
    },
    Stream {
        to: Stream,
        written: u64,
    },
}

#[derive(Debug)]
enum Stream {
    Stdout(io::Stdout),
    Device(fs::File),
}

impl AtomicFile {
    /// Begins a file.
    ///
    /// # Errors
    /// When the target is a folder, its folder is not there or cannot be written, or it is a file that one may not
    /// write or whose owner cannot be kept.
    pub fn create(target: &Path) -> Result<AtomicFile> {
        let name = target.display().to_string();
        if ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|same| target == Path::new(same)) {
            return Ok(AtomicFile::stdout());
        }
        let failed = |source| Error::Write { file: name.clone(), source, left: Left::NotBegun };
        let before = match fs::metadata(target) {
            Ok(there) => Some(there),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(failed(e)),
        };
        let bytes = match before {
            Some(there) if there.is_dir() => return Err(failed(io::ErrorKind::IsADirectory.into())),
            Some(there) if !there.is_file() => {
                let device = fs::OpenOptions::new().write(true).open(target).map_err(failed)?;
                Bytes::Stream { to: Stream::Device(device), written: 0 }
            }
            before => {
                let target = followed(target).map_err(failed)?;
                let part = Part::begin(&target, before.as_ref()).map_err(|e| match e {
                    Refused::Io(source) => failed(source),
                    Refused::Folder(source) => Error::Folder { file: name.clone(), source },
                    Refused::Owner(owner) => Error::Owner { file: name.clone(), owner },
                })?;
                Bytes::Whole { part, target }
            }
        };
        Ok(AtomicFile { name, bytes: BufWriter::with_capacity(BUFFER, bytes), failed: None })
    }

    /// Standard output.
    pub fn stdout() -> AtomicFile {
        let bytes = Bytes::Stream { to: Stream::Stdout(io::stdout()), written: 0 };
        AtomicFile { name: STDOUT.to_owned(), bytes: BufWriter::with_capacity(BUFFER, bytes), failed: None }
    }

    /// The failure to write that came up, if any. It names the file, and says what is there now.
    pub fn failure(&mut self) -> Option<Error> {
        let source = self.failed.take()?;
        Some(self.error(source))
    }

    /// Brings the bytes to the disk and gives the file its name.
    ///
    /// # Errors
    /// When the disk is full or the name cannot be given; the target is then as it was.
    pub fn commit(self) -> Result<()> {
        AtomicFile::commit_all(vec![self])
    }

    /// Commits several files together: no name is given before the bytes of all are on the disk.
    ///
    /// # Errors
    /// When the disk is full or a name cannot be given; the error says which files were written all the same.
    pub fn commit_all(mut files: Vec<AtomicFile>) -> Result<()> {
        for file in &mut files {
            file.seal()?;
        }
        let mut naming = naming();
        let mut written = Vec::new();
        for file in files {
            let (name, stream) = (file.name.clone(), file.is_stream());
            if let Err(source) = file.appear(&mut naming) {
                let left = if written.is_empty() { Left::Unchanged } else { Left::Written { files: written } };
                return Err(Error::Write { file: name, source, left });
            }
            if !stream {
                written.push(name);
            }
        }
        Ok(())
    }

    /// Gives up every file that is not complete, for a program that ends now: temporary files are removed, and no name
    /// is given after this returns. Files that are committed together at this moment get their names first.
    pub fn abandon_all() {
        let mut naming = naming();
        naming.remove_parts();
        std::mem::forget(naming); // the lock stays closed
    }

    fn is_stream(&self) -> bool {
        matches!(self.bytes.get_ref(), Bytes::Stream { .. })
    }

    fn error(&self, source: io::Error) -> Error {
        let left = match self.bytes.get_ref() {
            Bytes::Whole { .. } => Left::Unchanged,
            Bytes::Stream { written, .. } => Left::Partly { bytes: *written },
        };
        Error::Write { file: self.name.clone(), source, left }
    }

    /// Brings the bytes to the disk.
    fn seal(&mut self) -> Result<()> {
        let sealed = self.bytes.flush().and_then(|()| match self.bytes.get_mut() {
            Bytes::Whole { part, target } => part.seal(target),
            Bytes::Stream { .. } => Ok(()),
        });
        match self.failed.take().map_or(sealed, Err) {
            Ok(()) => Ok(()),
            Err(source) => Err(self.error(source)),
        }
    }

    /// Gives the file its name.
    fn appear(self, naming: &mut Naming) -> io::Result<()> {
        match self.bytes.into_inner().map_err(|e| e.into_error())? {
            Bytes::Whole { part, target } => part.appear(&target, naming),
            Bytes::Stream { .. } => Ok(()),
        }
    }

    /// Keeps a failure, and passes on one like it.
    fn kept<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.map_err(|e| {
            let passed_on = io::Error::new(e.kind(), format!("`{}`: {e}", self.name));
            if e.kind() != io::ErrorKind::Interrupted {
                self.failed.get_or_insert(e);
            }
            passed_on
        })
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.bytes.write(bytes);
        self.kept(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.bytes.flush();
        self.kept(flushed)
    }
}

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Bytes::Whole { part, .. } => part.file().write(bytes),
            Bytes::Stream { to, written } => {
                let now = match to {
                    Stream::Stdout(stdout) => stdout.write(bytes),
                    Stream::Device(device) => device.write(bytes),
                }?;
                *written += now as u64;
                Ok(now)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Bytes::Stream { to: Stream::Stdout(stdout), .. } => stdout.flush(),
            Bytes::Stream { to: Stream::Device(_), .. } | Bytes::Whole { .. } => Ok(()),
        }
    }
}

/// Names are given by one thread at a time.
fn naming() -> MutexGuard<'static, Naming> {
    static NAMING: Mutex<Naming> = Mutex::new(Naming::new());
    NAMING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path that a path leads to: links are followed, also to a file that is not there yet.
pub(crate) fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if let Ok(real) = path.canonicalize() {
            return Ok(real);
        }
        match path.read_link() {
            Ok(to) => path = folder_of(&path).join(to),
            // Not a link: the file is not there, but its folder is.
            Err(_) => {
                let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                return Ok(folder_of(&path).canonicalize()?.join(name));
            }
        }
    }
    Err(io::Error::other("its links lead in a circle"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests;
