//! What a verb reads and writes, and that nothing it writes is something it reads.

use crate::args::{BenchPaperArgs, BenchVerb, OutputArgs, UncertaintyArgs, Verb};
use crate::failure::{Failure, Outcome};
use crate::uncertainty::numbered;
use m3impute_io::FileId;
use std::path::{Path, PathBuf};

/// A file by what it is to a verb.
struct Place {
    what: &'static str,
    at: At,
}

enum At {
    Path(PathBuf),
    Stdin,
    Stdout,
}

/// The files of a verb.
#[derive(Default)]
struct Files {
    reads: Vec<Place>,
    writes: Vec<Place>,
    /// What to do about an output that is the input.
    instead: Instead,
}

/// What to do about an output that is the input.
#[derive(Clone, Copy, Default, PartialEq)]
enum Instead {
    #[default]
    AnotherName,
    /// The verb can overwrite its input, when it is told to.
    InPlace,
}

/// Refuses a request in which an output is an input, or another output.
///
/// Nothing is opened for writing before this.
pub fn check(verb: &Verb) -> Outcome {
    let files = Files::of(verb);
    for (nth, write) in files.writes.iter().enumerate() {
        let Some(id) = write.id() else { continue };
        let same = files.reads.iter().chain(&files.writes[..nth]).find(|other| other.id().as_ref() == Some(&id));
        if let Some(other) = same {
            return Err(Failure::usage(format!("the {write} is the {}", other.what), files.hint(write, other)));
        }
    }
    Ok(())
}

impl Files {
    fn of(verb: &Verb) -> Files {
        match verb {
            Verb::Impute(args) => {
                let files = Files::default().reads_table(args.input.as_ref());
                let files = match args.in_place {
                    true => files,
                    false => files.writes_table(&args.to, Some(&args.uncertainty)),
                };
                let files = files.writes("report", args.report.as_deref());
                let further = &args.uncertainty;
                let only_fills = further.interval.is_none() && further.draws.is_none() && !further.probabilities;
                Files { instead: if only_fills { Instead::InPlace } else { Instead::AnotherName }, ..files }
            }
            Verb::Fit(args) => {
                Files::default().reads_table(args.input.as_ref()).writes("model", Some(args.output.as_path()))
            }
            Verb::Transform(args) => Files::default()
                .reads_table(args.input.as_ref())
                .reads("model", Some(args.model.as_path()))
                .writes_table(&args.to, Some(&args.uncertainty)),
            Verb::Explain(args) => {
                Files::default().reads("model", Some(args.model.as_path())).reads_table(args.input.as_ref()).prints()
            }
            Verb::Info(args) => Files::default().reads("model", Some(args.model.as_path())).prints(),
            Verb::Evaluate(args) => {
                let table = args.truth.as_ref().or(args.input.as_ref());
                Files::default()
                    .reads_table(table)
                    .reads("list of observed cells", args.observed.as_deref())
                    .writes("report", args.report.as_deref())
                    .prints()
            }
            Verb::Describe(args) => Files::default().reads_table(args.input.as_ref()).prints(),
            Verb::Ampute(args) => Files::default().reads_table(args.input.as_ref()).writes_table(&args.to, None),
            Verb::Bench(BenchVerb::Paper(args)) => Files::default().of_bench(args).prints(),
            Verb::Methods(_)
            | Verb::Bench(BenchVerb::Engine(_) | BenchVerb::M3(_))
            | Verb::Completions(_)
            | Verb::Man(_) => Files::default(),
        }
    }

    fn reads(mut self, what: &'static str, path: Option<&Path>) -> Files {
        self.reads.extend(path.map(|path| Place { what, at: At::Path(path.to_owned()) }));
        self
    }

    fn reads_table(mut self, name: Option<&String>) -> Files {
        let at = name.filter(|name| *name != "-").map_or(At::Stdin, |name| At::Path(name.into()));
        self.reads.push(Place { what: "input", at });
        self
    }

    fn writes(mut self, what: &'static str, path: Option<&Path>) -> Files {
        let at = |path: &Path| if path == Path::new("-") { At::Stdout } else { At::Path(path.to_owned()) };
        self.writes.extend(path.map(|path| Place { what, at: at(path) }));
        self
    }

    fn writes_table(self, to: &OutputArgs, uncertainty: Option<&UncertaintyArgs>) -> Files {
        match (&to.output, uncertainty.and_then(|asked| asked.draws)) {
            (None, _) => self.prints(),
            (Some(path), None) => self.writes("output", Some(path)),
            (Some(path), Some(count)) => {
                (1..=count).fold(self, |files, number| files.writes("output", Some(&numbered(path, number))))
            }
        }
    }

    fn prints(mut self) -> Files {
        self.writes.push(Place { what: "output", at: At::Stdout });
        self
    }

    fn of_bench(mut self, args: &BenchPaperArgs) -> Files {
        let (Some(data), false) = (&args.data, args.list) else { return self };
        for folder in ["datasets", "masks"] {
            for entry in std::fs::read_dir(data.join(folder)).into_iter().flatten().flatten() {
                self = self.reads("data of the bench", Some(&entry.path()));
            }
        }
        self = self.writes("file of rows", Some(&args.rows));
        let (Some(folder), Some(study)) = (&args.figures, &args.study) else { return self };
        let figures = ["", "-ranks", "-times"].map(|end| format!("{study}{end}.svg"));
        figures.iter().fold(self, |files, name| files.writes("figure", Some(&folder.join(name))))
    }

    fn hint(&self, write: &Place, other: &Place) -> &'static str {
        match (self.instead, &other.at) {
            (Instead::InPlace, At::Path(_)) if (write.what, other.what) == ("output", "input") => {
                "use `--in-place` to overwrite it"
            }
            (Instead::InPlace, At::Stdin) if write.what == "output" => {
                "name the input, and use `--in-place` to overwrite it"
            }
            _ => "give it a name of its own",
        }
    }
}

impl Place {
    fn id(&self) -> Option<FileId> {
        match &self.at {
            At::Path(path) => FileId::of_path(path),
            At::Stdin => FileId::of_stdin(),
            At::Stdout => FileId::of_stdout(),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.at {
            At::Path(path) => write!(f, "{} `{}`", self.what, path.display()),
            At::Stdin | At::Stdout => write!(f, "standard {}", self.what),
        }
    }
}
