//! Where bytes come from.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Where a table comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The standard input.
    Stdin,
    /// A file.
    Path(PathBuf),
    /// Bytes in memory, under a name that errors mention.
    Bytes {
        /// The name.
        name: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

impl Input {
    /// What a user wrote: `-` is the standard input.
    ///
    /// ```
    /// use m3impute_io::Input;
    /// assert_eq!(Input::parse("-"), Input::Stdin);
    /// assert_eq!(Input::parse("a.csv").name(), "a.csv");
    /// ```
    pub fn parse(text: &str) -> Input {
        if text == "-" { Input::Stdin } else { Input::Path(PathBuf::from(text)) }
    }

    /// The name that errors mention.
    pub fn name(&self) -> String {
        match self {
            Input::Stdin => "stdin".to_owned(),
            Input::Path(path) => path.display().to_string(),
            Input::Bytes { name, .. } => name.clone(),
        }
    }

    /// The bytes, from the beginning.
    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send>> {
        Ok(match self {
            Input::Stdin => Box::new(io::stdin()),
            Input::Path(_) => Box::new(self.file()?),
            Input::Bytes { bytes, .. } => Box::new(Cursor::new(bytes.clone())),
        })
    }

    fn file(&self) -> Result<File> {
        let Input::Path(path) = self else { return Err(Error::Bug("not a path".to_owned())) };
        let file = File::open(path).map_err(|e| self.unreadable(e))?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(self.unreadable(io::ErrorKind::IsADirectory.into()));
        }
        Ok(file)
    }

    pub(crate) fn unreadable(&self, source: io::Error) -> Error {
        Error::Read { file: self.name(), source }
    }
}

/// Bytes that have begun: the start is looked at before anybody decides what they are.
pub(crate) struct Started {
    pub(crate) start: Vec<u8>,
    pub(crate) rest: Box<dyn Read + Send>,
    pub(crate) ended: bool,
}

impl Started {
    /// Opens the input and looks at up to `size` bytes of it.
    pub(crate) fn open(input: &Input, size: usize) -> Result<Started> {
        let mut rest = input.open()?;
        let mut start = Vec::new();
        rest.by_ref().take(size as u64).read_to_end(&mut start).map_err(|e| input.unreadable(e))?;
        let ended = start.len() < size;
        Ok(Started { start, rest, ended })
    }

    /// The bytes as a file one can move about in: a stream is put into a nameless temporary file.
    pub(crate) fn into_file(mut self, input: &Input) -> Result<File> {
        // A named pipe cannot be opened twice: its start is already gone.
        if matches!(input, Input::Path(path) if path.metadata().is_ok_and(|m| m.is_file())) {
            return input.file();
        }
        let mut spool = || -> io::Result<File> {
            let mut file = tempfile::tempfile()?;
            file.write_all(&self.start)?;
            io::copy(&mut self.rest, &mut file)?;
            file.seek(SeekFrom::Start(0))?;
            Ok(file)
        };
        spool().map_err(|e| input.unreadable(e))
    }
}
