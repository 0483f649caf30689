//! Commands: somebody asks for an action, once.
//!
//! A Command's UID is in the status before it is deleted, and the next one is taken only when it is
//! gone: none is carried out twice. Must not know what an action does.

use std::sync::Arc;

use trainyard_api::volcano::{Action, names};

use super::{aids, draft::Draft};
use crate::{
    aid::{Aid, CommandFacts},
    child::Child,
    plan::{Event, Stage, Write},
};

/// Commands aimed at the job that nobody deletes yet, oldest first.
fn waiting<'a>(draft: &Draft<'a>) -> Vec<&'a Arc<Aid<CommandFacts>>> {
    let is_meant = |target: &crate::aid::CommandTarget| {
        (target.kind.is_empty() || target.kind == names::KIND)
            && (target.api_version.is_empty() || target.api_version == names::API_VERSION)
    };
    let mut commands: Vec<_> = draft
        .seen
        .commands
        .iter()
        .filter(|command| !command.is_leaving && is_meant(&command.facts.target))
        .collect();
    commands.sort_by_key(|command| (command.version, &command.name));
    commands
}

/// Takes the next Command, unless one that was taken is still there. What it asks for, and why in
/// words.
pub(super) fn take(draft: &mut Draft<'_>) -> Option<(Action, String)> {
    let commands = waiting(draft);
    if commands.iter().any(|command| *command.uid == *draft.status.last_command) {
        return None;
    }
    let command = commands.first()?;
    draft.status.last_command = command.uid.to_string();
    draft.events.push(told(command));
    let action = Action::parse(&command.facts.action)?;
    Some((action, format!("Command {} asks for it.", command.name)))
}

/// Deletes the Command that was taken. An ended job has nothing left to do: there all go.
pub(super) fn clean_up(draft: &Draft<'_>) -> Stage {
    let mut stage = Stage::default();
    for command in waiting(draft) {
        if !draft.phase().is_finished() && *command.uid != *draft.status.last_command {
            continue;
        }
        stage.writes.push(Write::Delete(Child::Command, aids::delete(&command.name, &command.uid)));
        if *command.uid != *draft.status.last_command {
            stage.events.push(told(command));
        }
    }
    stage
}

fn told(command: &Aid<CommandFacts>) -> Event {
    let action = &command.facts.action;
    if Action::parse(action).is_some() {
        let message = format!(
            "Start to execute command {action}, and clean it up to make sure executed not more \
             than once."
        );
        Event::normal("CommandIssued", message)
    } else {
        let message = format!(
            "Command {} asks for {action:?}, which is no action: write for example AbortJob, \
             ResumeJob or RestartJob",
            command.name
        );
        Event::warning("CommandIssued", message)
    }
}
