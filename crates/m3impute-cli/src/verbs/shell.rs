//! `completions` and `man`: what a shell and a manual reader need.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::{Failure, Outcome};
use crate::terminal::print;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use m3impute_io::AtomicFile;
use std::path::Path;

pub fn completions(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "m3impute", &mut script);
    print(script)
}

pub fn man(args: &ManArgs) -> Outcome {
    let command = Cli::command();
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page).map_err(|e| Failure::io("manual page", &e))?;
        return print(page);
    };
    let place = folder.display().to_string();
    std::fs::create_dir_all(folder).map_err(|e| Failure::io(&place, &e))?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    pages_of(&command, folder, &mut pages)?;
    Ok(AtomicFile::commit_all(pages)?)
}

/// The pages of a command and of those below it.
fn pages_of(command: &Command, folder: &Path, pages: &mut Vec<AtomicFile>) -> Outcome {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages_of(below, folder, pages)?;
    }
    let page = Man::new(command.clone());
    let target = folder.join(page.get_filename());
    let mut file = AtomicFile::create(&target)?;
    page.render(&mut file).map_err(|e| Failure::io(&target.display().to_string(), &e))?;
    pages.push(file);
    Ok(())
}
