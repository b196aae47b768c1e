//! `tardy restore`: restore the settings that a killed tardy left changed.

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::{Exit, flags::FormatFlags, output};
use crate::{
    setup::journal::{JournalPath, Recovered, Undone, recover},
    sys::root::Root,
};

/// Restore the settings that a killed tardy left changed.
///
/// Before tardy changes a setting (interrupts, cpusets, CPUs of tasks, governors), it writes the
/// old value to /run/tardy/journal. It restores everything itself unless it is killed (kill -9, out
/// of memory). A running tardy locks its journal: its changes are not touched, even if it runs in
/// another container.
#[derive(Debug, Args)]
pub(super) struct RestoreFlags {
    #[command(flatten)]
    format: FormatFlags,
}

/// Restores, and prints what was restored.
pub(super) fn restore(flags: &RestoreFlags) -> Result<Exit> {
    let recovered = recover(&JournalPath::usual(), &Root::default())?;
    let (state, undone) = match recovered {
        Recovered::Nothing => ("nothing", Undone::default()),
        Recovered::OtherBoot => ("other_boot", Undone::default()),
        Recovered::Undone(undone) => ("restored", undone),
        Recovered::Alive(owner) => bail!(
            "{} holds these changes and is alive; it puts them back at its end. End it{}",
            owner.words(),
            owner.how_to_end()
        ),
        Recovered::Unknown(why) => bail!(why),
    };
    if flags.format.is_json() {
        let result =
            json!({ "state": state, "put_back": undone.put_back, "failed": undone.failed });
        output::put_json(&result)?;
    } else {
        output::put(&text(state, &undone))?;
    }
    undone.failed.iter().for_each(|what| output::notice(&format!("not restored: {what}")));
    Ok(if undone.failed.is_empty() { Exit::Done } else { Exit::Failed })
}

/// Restores what this process had changed before it was replaced by this program, and prints it.
/// The error that ended it is printed already.
pub(super) fn after_abort() -> Exit {
    match recover(&JournalPath::usual(), &Root::default()) {
        Ok(Recovered::Undone(undone)) => {
            undone.put_back.iter().for_each(|what| output::notice(&format!("restored: {what}")));
            undone.failed.iter().for_each(|what| output::warn(&format!("not restored: {what}")));
        }
        Ok(Recovered::Nothing | Recovered::OtherBoot) => {}
        Ok(Recovered::Alive(_) | Recovered::Unknown(_)) => {
            output::warn("settings of the machine may be changed still: run `tardy restore`");
        }
        Err(error) => output::complain(&error.into()),
    }
    Exit::Failed
}

fn text(state: &str, undone: &Undone) -> String {
    match state {
        "other_boot" => "The journal was of an earlier boot, whose settings are gone: discarded.\n",
        _ if undone.put_back.is_empty() && undone.failed.is_empty() => "Nothing to restore.\n",
        _ => {
            let line = |what: &String| format!("restored: {what}\n");
            return undone.put_back.iter().map(line).collect();
        }
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_has_its_line() {
        let undone = Undone { put_back: vec!["a".into(), "b".into()], failed: Vec::new() };
        assert_eq!(text("restored", &undone), "restored: a\nrestored: b\n");
        assert_eq!(text("nothing", &Undone::default()), "Nothing to restore.\n");
        assert!(text("other_boot", &Undone::default()).contains("discarded"));
    }
}
