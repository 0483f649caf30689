//! `trainyard render`: simpletfjob. One Job template becomes one Job per machine.
//!
//! Owns files, the cluster's nodes and what is said; who does what and how it is rendered is
//! `trainyard-render`'s.

mod apply;
mod cluster;
mod files;
mod flags;
mod help;

use trainyard_render::{
    crew::{Crew, CrewError, Ps, Wanted},
    hosts,
    rendering::{Rendered, render},
    template::{ErrorKind, Missing},
};

pub(crate) use flags::{Flags, Simpletfjob, called_as_simpletfjob};

use self::{cluster::Nodes, files::Output};
use crate::{failure::Failure, output};

/// Renders, and writes or creates what was rendered.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let template = files::read(&flags.template)?;
    let wanted = wanted(flags)?;
    let output = Output::of(flags)?;
    let nodes = nodes(flags)?;
    let crew = choose(&nodes, &wanted)?;
    let rendered = rendered(flags, &template, &crew)?;
    if flags.apply {
        // Everything is known to be readable before anything is created or written.
        apply::check(&rendered)?;
    }
    if let Some(output) = &output {
        output.write(&rendered.text)?;
        output.announce(&crew);
    }
    if flags.apply { apply::create(flags, &rendered) } else { Ok(()) }
}

/// What the flags ask for, with the files that they name.
fn wanted(flags: &Flags) -> Result<Wanted, Failure> {
    let machines = match flags.num {
        -1 | 0 => None,
        number => Some(usize::try_from(number).map_err(|_| {
            Failure::usage(format!("-N {number} is not a number of machines"))
                .hint("give how many machines to use, or -1 for all of them")
        })?),
    };
    let excluded = match &flags.exc {
        Some(file) => {
            let text = files::read(file)?;
            hosts::read_excluded(&text)
                .map_err(|error| files::wrong(file, &error).hint(EXCLUDED_HINT))?
        }
        None => Vec::new(),
    };
    let ps = match &flags.psf {
        Some(file) => {
            let text = files::read(file)?;
            Ps::Named(hosts::read(&text).map_err(|error| files::wrong(file, &error))?)
        }
        None => Ps::First(flags.psn),
    };
    Ok(Wanted { machines, excluded, ps, chief: flags.chief, evaluator: flags.evaluator })
}

const EXCLUDED_HINT: &str = "write one host per line, or leave -E out";

fn nodes(flags: &Flags) -> Result<Nodes, Failure> {
    if let Some(list) = &flags.nodes {
        let names = hosts::read_list(list)
            .map_err(|error| Failure::usage(format!("--nodes {list}: {error}")))?;
        return Ok(Nodes { names, ..Nodes::default() });
    }
    if let Some(file) = &flags.nodes_file {
        let text = files::read(file)?;
        let names = hosts::read(&text).map_err(|error| files::wrong(file, &error))?;
        return Ok(Nodes { names, ..Nodes::default() });
    }
    cluster::nodes(flags)
}

/// Chooses machines and says which ones were passed over.
fn choose(nodes: &Nodes, wanted: &Wanted) -> Result<Crew, Failure> {
    for (name, reason) in &nodes.skipped {
        output::say(&format!("note: {name} is {reason} and not used (--all-nodes uses it)\n"));
    }
    let there = |host: &String| {
        nodes.names.contains(host) || nodes.skipped.iter().any(|(name, _)| name == host)
    };
    for host in wanted.excluded.iter().filter(|host| !there(host)) {
        output::say(&format!("note: {host} is excluded, but there is no such machine\n"));
    }
    Crew::choose(&nodes.names, wanted).map_err(|error| {
        let failure = Failure::usage(&error);
        let skipped = |name: &str| nodes.skipped.iter().any(|(skipped, _)| skipped == name);
        match &error {
            CrewError::TooFewMachines { .. } | CrewError::NoMachine { .. }
                if !nodes.skipped.is_empty() =>
            {
                failure.hint(format!(
                    "cordoned or not ready: {}; --all-nodes uses them all the same",
                    nodes.skipped.len()
                ))
            }
            CrewError::UnknownPs(name) if skipped(name) => failure
                .hint(format!("{name} is cordoned or not ready; --all-nodes uses it all the same")),
            _ => failure,
        }
    })
}

/// A mistake of the template is repeated for every machine; the first few say it.
const SAID_MAX: usize = 5;

/// The text, known to be YAML.
fn rendered(flags: &Flags, template: &str, crew: &Crew) -> Result<Rendered, Failure> {
    let missing = if flags.allow_missing { Missing::Allowed } else { Missing::Refused };
    let name = flags.template.display();
    let rendered = render(template, missing, crew, flags.port).map_err(|error| {
        let hint = match error.kind {
            ErrorKind::UnknownVariable { .. } => {
                "nothing was written; --allow-missing renders unknown variables as <no value>"
            }
            _ => "nothing was written",
        };
        Failure::invalid(vec![format!("{name}: {error}")]).hint(hint)
    })?;
    let warnings = rendered.check().map_err(|error| {
        Failure::invalid(vec![format!("{name}: {error}")])
            .hint("nothing was written; mind the indentation of what the template inserts")
    })?;
    for warning in warnings.iter().take(SAID_MAX) {
        output::warn(&format!("{name}: rendered text, {warning}"));
    }
    if warnings.len() > SAID_MAX {
        output::warn(&format!("{name}: and {} more like these", warnings.len() - SAID_MAX));
    }
    Ok(rendered)
}
