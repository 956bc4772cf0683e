//! `completions` and `man`: what a shell and a manual reader need.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::{Failure, Outcome};
use crate::terminal::print;
use clap::CommandFactory;

pub fn completions(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "m3impute", &mut script);
    print(script)
}

pub fn man(args: &ManArgs) -> Outcome {
    let command = Cli::command();
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(|e| Failure::io("manual page", &e))?;
        return print(page);
    };
    let place = folder.display().to_string();
    std::fs::create_dir_all(folder).map_err(|e| Failure::io(&place, &e))?;
    clap_mangen::generate_to(command, folder).map_err(|e| Failure::io(&place, &e))
}
