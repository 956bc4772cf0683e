//! The runner of the fuzz targets on the stable toolchain.

use m3impute_fuzz::runner::{self, Plan};
use m3impute_fuzz::{TARGETS, Target, seeds};
use std::error::Error;
use std::process::ExitCode;

const USAGE: &str = "\
usage: m3impute-fuzz run TARGET [--seeds PREFIX] [--executions N] [--seconds S] [--memory MB] [--batch N] [--first N]
       m3impute-fuzz all [the same options]     each target in turn, models by method
       m3impute-fuzz try TARGET FILE            one input
       m3impute-fuzz seeds                      write the seeds that are made anew
targets: csv, cells, parquet, arrow, model";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match work(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Whether nothing was found.
fn work(arguments: &[&str]) -> Result<bool, Box<dyn Error>> {
    match arguments {
        ["seeds"] => seeds::write().map(|()| true),
        ["try", target, file] => {
            let accepted = (find(target)?.1)(&std::fs::read(file)?);
            println!("{}", if accepted { "accepted" } else { "refused" });
            Ok(true)
        }
        ["batch", target, prefix, number, count, memory, trace @ ..] => {
            let plan = Plan {
                target: find(target)?,
                prefix: (*prefix).to_owned(),
                executions: count.parse()?,
                seconds: u64::MAX,
                batch: 0,
                memory: memory.parse()?,
                first: number.parse()?,
            };
            let counts = runner::batch(&plan, trace.first().map(std::path::Path::new))?;
            let numbers = [counts.executions, counts.accepted, counts.panics, counts.slow, counts.slowest];
            println!("{}", numbers.map(|n| n.to_string()).join(" "));
            Ok(true)
        }
        ["run", target, options @ ..] => run(&plan(find(target)?, options)?),
        ["all", options @ ..] => {
            let mut clean = true;
            for target in TARGETS {
                let asked = plan(target, options)?;
                let methods = m3impute::METHODS.iter().filter(|m| m.inductive).map(|m| format!("{}-", m.name));
                let prefixes = if target.0 == "model" { methods.collect() } else { vec![String::new()] };
                let seconds = asked.seconds / (TARGETS.len() * prefixes.len()) as u64;
                for prefix in prefixes {
                    clean &= run(&Plan { prefix, seconds, ..asked.clone() })?;
                }
            }
            Ok(clean)
        }
        _ => Err("no such command".into()),
    }
}

fn find(name: &str) -> Result<Target, Box<dyn Error>> {
    TARGETS.into_iter().find(|t| t.0 == name).ok_or_else(|| format!("no target `{name}`").into())
}

fn plan(target: Target, options: &[&str]) -> Result<Plan, Box<dyn Error>> {
    let mut plan = Plan {
        target,
        prefix: String::new(),
        executions: 1_000_000,
        seconds: u64::MAX,
        batch: 20_000,
        memory: 1024,
        first: 0,
    };
    for option in options.chunks(2) {
        match option {
            ["--seeds", prefix] => plan.prefix = (*prefix).to_owned(),
            ["--executions", n] => plan.executions = n.parse()?,
            ["--seconds", n] => plan.seconds = n.parse()?,
            ["--memory", n] => plan.memory = n.parse()?,
            ["--batch", n] => plan.batch = n.parse()?,
            ["--first", n] => plan.first = n.parse()?,
            _ => return Err(format!("no such option: {}", option.join(" ")).into()),
        }
    }
    Ok(plan)
}

fn run(plan: &Plan) -> Result<bool, Box<dyn Error>> {
    let name = format!("{} {}", plan.target.0, plan.prefix);
    let (mut said, started) = (std::time::Instant::now(), std::time::Instant::now());
    let counts = runner::run(plan, |counts| {
        if said.elapsed().as_secs() >= 30 {
            said = std::time::Instant::now();
            println!("{}: {counts}, {} s", name.trim(), started.elapsed().as_secs());
        }
    })?;
    println!("{}: {counts}, {} s, done", name.trim(), started.elapsed().as_secs());
    Ok(counts.is_clean())
}
