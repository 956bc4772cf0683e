//! What a person at a terminal sees: notes, progress, colour. Data goes to standard output, all else to standard error.

use crate::args::{VerbosityArgs, When};
use crate::failure::{Failure, Outcome};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use m3impute::Progress;
pub use m3impute_report::words::{bytes, count, percent, thousands};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What this run of the program prints, and how.
#[derive(Clone, Copy, Debug)]
pub struct Verbosity {
    quiet: bool,
    progress: bool,
    /// Whether standard output may be coloured.
    pub color: bool,
    /// Whether standard error may be.
    color_err: bool,
}

impl Verbosity {
    pub fn of(args: VerbosityArgs) -> Verbosity {
        let when = |when: When, terminal: bool| match when {
            When::Auto => terminal,
            When::Always => true,
            When::Never => false,
        };
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let may_color = set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb");
        Verbosity {
            quiet: args.quiet,
            progress: !args.quiet && when(args.progress, std::io::stderr().is_terminal()),
            color: when(args.color, std::io::stdout().is_terminal() && may_color),
            color_err: when(args.color, std::io::stderr().is_terminal() && may_color),
        }
    }

    /// Prints errors only.
    pub fn quiet() -> Verbosity {
        Verbosity { quiet: true, progress: false, color: false, color_err: false }
    }

    /// Prints a line that is no result.
    pub fn say(&self, line: impl AsRef<str>) {
        if !self.quiet {
            complain(&plain(line.as_ref()));
        }
    }

    /// Prints a line that has colours of its own, and no text of a file that was not made plain.
    pub fn say_coloured(&self, line: &str) {
        if !self.quiet {
            complain(line);
        }
    }

    /// Prints what a user should know, but need not act on.
    pub fn note(&self, line: impl AsRef<str>) {
        if !self.quiet {
            self.complain(33, "note", line.as_ref());
        }
    }

    /// Prints a line on standard error under a coloured word, even where quiet.
    pub fn complain(&self, style: u8, word: &str, line: &str) {
        complain(&format!("{}: {}", styled(self.color_err, style, word), plain(line)));
    }

    /// The same for what goes to standard error.
    pub fn aside(&self) -> Verbosity {
        Verbosity { color: self.color_err, ..*self }
    }

    /// A bar that follows a run; it is gone when dropped. Where no terminal draws it, a line now and then stands for
    /// it.
    pub fn bar(&self) -> Bar {
        if !self.progress {
            return Bar::Hidden;
        }
        if !std::io::stderr().is_terminal() {
            return Bar::Lines(Arc::default());
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
        let left = |state: &ProgressState, to: &mut dyn std::fmt::Write| {
            // Before anything is done nobody knows.
            let _ = if state.pos() > 0 { write!(to, ", {} left", spoken(state.eta().as_secs_f64())) } else { Ok(()) };
        };
        bar.set_style(
            ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {elapsed}{left}  {msg}")
                .expect("the template is right")
                .with_key("left", left),
        );
        Bar::Drawn(bar)
    }

    /// A text for standard output in a style of the terminal: 1 bold, 2 dim, 31 red, 32 green, 33 yellow.
    pub fn style(&self, style: u8, text: &str) -> String {
        styled(self.color, style, text)
    }
}

fn styled(color: bool, style: u8, text: &str) -> String {
    if color { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Lines of progress are that far apart.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Progress on standard error.
#[derive(Clone)]
pub enum Bar {
    Hidden,
    Drawn(ProgressBar),
    Lines(Arc<Mutex<Lines>>),
}

/// Progress as lines of a log.
#[derive(Default)]
pub struct Lines {
    stage: &'static str,
    /// When the stage began, and how much of it was done then.
    began: Option<(Instant, u64)>,
    said: Option<Instant>,
}

impl Bar {
    /// Shows how far a run is.
    pub fn show(&self, progress: &Progress) {
        match self {
            Bar::Hidden => {}
            Bar::Drawn(bar) => {
                bar.set_prefix(progress.stage);
                bar.set_length(progress.total);
                bar.set_position(progress.done);
                bar.set_message(plain(&progress.note));
            }
            Bar::Lines(lines) => {
                let line = lines.lock().ok().and_then(|mut lines| lines.next(progress, Instant::now()));
                line.iter().for_each(|line| complain(&plain(line)));
            }
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Bar::Drawn(bar) = self {
            bar.finish_and_clear();
        }
    }
}

impl Lines {
    /// The line to say now, if it is time for one.
    fn next(&mut self, progress: &Progress, now: Instant) -> Option<String> {
        let Progress { stage, done, total, note } = progress;
        if self.stage != *stage || self.began.is_none() {
            *self = Lines { stage, began: Some((now, *done)), said: self.said };
        }
        if self.said.is_some_and(|said| now - said < BETWEEN_LINES) && done < total {
            return None;
        }
        self.said = Some(now);
        let (began, first) = self.began?;
        let left = match done.saturating_sub(first) {
            0 => String::new(),
            some => {
                let seconds = (now - began).as_secs_f64() / some as f64 * total.saturating_sub(*done) as f64;
                format!(", {} left", spoken(seconds))
            }
        };
        Some(format!("{stage} {}/{}{left}, {note}", thousands(*done as usize), thousands(*total as usize)))
    }
}

/// Seconds as a person would say them.
fn spoken(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..100 => format!("{whole} s"),
        100..6000 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Writes a line to standard error; when nobody reads it any more, that is no reason to panic.
pub fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A text of a file as it is shown: nothing in it moves the cursor or colours the screen.
pub fn plain(text: &str) -> String {
    m3impute::escaped(text).into_owned()
}

/// Prints a result on standard output; a reader that went away is no reason to panic.
pub fn print(result: impl AsRef<[u8]>) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(result.as_ref()).and_then(|()| out.flush()).map_err(|e| Failure::io("standard output", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_progress_come_now_and_then_and_say_what_is_left() {
        let at = |done: u64| Progress { stage: "training", done, total: 400, note: "loss 0.1".to_owned() };
        let (mut lines, start) = (Lines::default(), Instant::now());
        let later = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(lines.next(&at(10), start).as_deref(), Some("training 10/400, loss 0.1"));
        assert_eq!(lines.next(&at(60), later(5)), None);
        assert_eq!(lines.next(&at(110), later(10)).as_deref(), Some("training 110/400, 29 s left, loss 0.1"));
        assert_eq!(lines.next(&at(400), later(12)).as_deref(), Some("training 400/400, 0 s left, loss 0.1"));
        assert_eq!([spoken(99.0), spoken(600.0), spoken(9000.0)], ["99 s", "10 min", "2 h 30 min"]);
    }
}
