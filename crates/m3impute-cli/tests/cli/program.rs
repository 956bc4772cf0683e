//! Runs the program in a folder of its own, as a user would.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with files, in which the program runs.
pub struct Folder(tempfile::TempDir);

/// What a run of the program left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder with one file.
    pub fn with(name: &str, content: impl AsRef<[u8]>) -> Folder {
        let folder = Folder::new();
        folder.write(name, content);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("a file is written");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("text")
    }

    /// The names of the files in the folder.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.0.path())
            .expect("the folder is there")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
            .collect();
        names.sort();
        names
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_m3impute"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().expect("the program runs"))
    }

    /// Runs the program with bytes on its standard input.
    pub fn pipe(&self, arguments: &[&str], input: &[u8]) -> (Ran, Vec<u8>) {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut to = child.stdin.take().expect("a pipe");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || to.write_all(&input));
        let output = child.wait_with_output().expect("the program ends");
        writer.join().expect("the writer ends").ok();
        let bytes = output.stdout.clone();
        (Ran::of(output), bytes)
    }
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Expects success.
    pub fn done(self) -> Ran {
        assert_eq!(self.code, 0, "expected success: {}", self.err);
        self
    }

    /// Expects an exit code, and every one of these texts in the error.
    pub fn fails(self, code: i32, texts: &[&str]) -> Ran {
        assert_eq!(self.code, code, "expected exit code {code}: {}", self.err);
        for text in texts {
            assert!(self.err.contains(text), "expected `{text}` in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }
}

/// The example that is shipped.
pub fn penguins() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/penguins.csv"))
        .expect("the example is there")
}
