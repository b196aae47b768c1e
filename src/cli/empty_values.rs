//! Values of the command line that are empty or only blanks, as an unset variable of a script
//! makes them: a name that names nothing, and then matches no thread, or the only run there is.

use clap::{Arg, ArgMatches, Command, parser::ValueSource};

/// An empty text is a value of these: options that are those of the other side, a picture without
/// a title.
const MAY_BE_EMPTY: [&str; 3] = ["a", "b", "title"];

/// Refuses the first blank value of the command line, of any command and flag. The words of a
/// command after `--` are that command's.
///
/// # Errors
/// The flag, and what to do.
pub(super) fn refuse(definition: &Command, matches: &ArgMatches) -> Result<(), String> {
    if let Some(arg) = definition.get_arguments().find(|arg| is_blank(arg, matches)) {
        return Err(refusal(arg));
    }
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    definition.find_subcommand(name).map_or(Ok(()), |verb| refuse(verb, matches))
}

fn is_blank(arg: &Arg, matches: &ArgMatches) -> bool {
    let id = arg.get_id().as_str();
    if MAY_BE_EMPTY.contains(&id) || arg.is_last_set() || !arg.get_action().takes_values() {
        return false;
    }
    let Ok(Some(mut values)) = matches.try_get_raw(id) else { return false };
    let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
    is_given && values.any(|value| value.to_string_lossy().trim().is_empty())
}

fn refusal(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.first().map_or("VALUE", |name| name.as_str());
    match arg.get_long() {
        Some(flag) => format!(
            "--{flag}: the value is empty; give a {value}, or leave the flag out (is a variable \
             of your script unset?)"
        ),
        None => format!(
            "{value}: the word is empty; give a {value}, or leave the word out (is a variable of \
             your script unset?)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn refused(words: &[&str]) -> Option<String> {
        let mut definition = command();
        let words = ["tardy"].iter().chain(words);
        let matches = definition.try_get_matches_from_mut(words).unwrap();
        refuse(&definition, &matches).err()
    }

    #[test]
    fn an_empty_value_is_refused_by_its_flag_in_every_command() {
        for (words, says) in [
            (&["run", "attach", "--comm", "", "--", "true"] as &[&str], "--comm: "),
            (&["run", "attach", "--comm", " \t"], "--comm: "),
            (&["run", "attach", "--cgroup", " "], "--cgroup: "),
            (&["run", "--name", " "], "--name: "),
            (&["--store", " ", "list"], "--store: "),
            (&["list", "--store", " "], "--store: "),
            (&["list", "--where", ""], "--where: "),
            (&["rm", "last", ""], "RUN: the word is empty; give a RUN"),
            (&["compare", "last", "--vs", ""], "--vs: "),
            (&["lab", "run", "--kernels", ""], "--kernels: "),
        ] {
            let said = refused(words).unwrap_or_default();
            assert!(said.starts_with(says) && said.contains("leave the "), "{words:?}: {said}");
        }
    }

    #[test]
    fn what_may_be_empty_passes() {
        for words in [
            &["run", "attach", "--comm", "ctl", "--", "sh", "-c", ""] as &[&str],
            &["ab", "timer", "--a", "", "--b", "--policy=other"],
            &["plot", "last", "-o", "x.svg", "--title", ""],
            &["run"],
        ] {
            assert_eq!(refused(words), None, "{words:?}");
        }
    }
}
