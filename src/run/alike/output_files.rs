//! Command lines of other programs without the files that they write: these have another name each
//! night, and change nothing of what is measured.

/// Options that name a file.
const OUTPUT_OPTIONS: [&str; 7] =
    ["--json", "--histfile", "--fifo", "--full-log", "--output", "--log", "--trace-output"];

/// A command line without the files that it writes: `--json=FILE`, `--json FILE` and `> FILE`.
pub(crate) fn without_outputs(command: &str) -> String {
    let mut words = command.split_whitespace().peekable();
    let mut kept: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        let (name, value) =
            word.split_once('=').map_or((word, None), |(name, own)| (name, Some(own)));
        let redirected = word.trim_start_matches(['1', '2', '&']).strip_prefix('>');
        let has_value = match redirected {
            Some(file) => !file.trim_start_matches('>').is_empty(),
            None if OUTPUT_OPTIONS.contains(&name) => value.is_some(),
            None => {
                kept.push(word);
                continue;
            }
        };
        // The word behind it is the file, unless it is an option.
        if !has_value && words.peek().is_some_and(|next| !next.starts_with('-')) {
            words.next();
        }
    }
    kept.join(" ")
}
