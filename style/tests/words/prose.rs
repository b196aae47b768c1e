//! Sentences and paragraphs of Markdown, without code, tables, headings and pictures.

/// Sums over documents.
#[derive(Debug, Default)]
pub(crate) struct Prose {
    words: usize,
    sentences: usize,
    long: usize,
    what: usize,
    which: usize,
    pub(crate) longest_paragraph: usize,
}

/// More words make a sentence long.
const LONG: usize = 40;
const VERBS: [&str; 12] =
    ["is", "was", "it", "they", "has", "had", "came", "comes", "does", "did", "no", "nobody"];
const PREPOSITIONS: [&str; 8] = ["of", "by", "in", "to", "for", "from", "with", "at"];
const RELATIVES: [&str; 3] = ["which", "whom", "whose"];

impl Prose {
    /// Adds one document.
    pub(crate) fn add(&mut self, markdown: &str) {
        for paragraph in paragraphs(markdown) {
            let count = paragraph.split_whitespace().count();
            self.longest_paragraph = self.longest_paragraph.max(count);
            for sentence in sentences(&paragraph) {
                let count = sentence.split_whitespace().count();
                // A few words are a heading or the end of a list.
                if count > 2 {
                    self.words += count;
                    self.sentences += 1;
                    self.long += usize::from(count > LONG);
                }
            }
            let words: Vec<String> = paragraph.split_whitespace().map(bare).collect();
            let pairs = || words.windows(2);
            let is_what = |pair: &&[String]| pair[0] == "what" && VERBS.contains(&&*pair[1]);
            let is_which = |pair: &&[String]| {
                PREPOSITIONS.contains(&&*pair[0]) && RELATIVES.contains(&&*pair[1])
            };
            self.what += pairs().filter(is_what).count();
            self.which += pairs().filter(is_which).count();
        }
    }

    /// Words of a sentence, on average.
    pub(crate) fn mean_words(&self) -> f64 {
        self.words as f64 / self.sentences.max(1) as f64
    }

    /// The share of long sentences, in percent.
    pub(crate) fn long_share(&self) -> f64 {
        100.0 * self.long as f64 / self.sentences.max(1) as f64
    }

    /// "What is ..." in 1,000 words.
    pub(crate) fn what_clauses(&self) -> f64 {
        1000.0 * self.what as f64 / self.words.max(1) as f64
    }

    /// "Of which ..." in 1,000 words.
    pub(crate) fn which_clauses(&self) -> f64 {
        1000.0 * self.which as f64 / self.words.max(1) as f64
    }
}

fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Paragraphs and items of lists, each in one line.
fn paragraphs(markdown: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut is_code = false;
    for line in markdown.lines() {
        let start = line.trim_start();
        if start.starts_with("```") {
            is_code = !is_code;
        } else if is_code
            || ["|", "#", "![", "<", ">", "$ "].iter().any(|own| start.starts_with(own))
        {
            continue;
        } else if start.is_empty() {
            found.push(String::new());
        } else {
            let item = item(start);
            if item.is_some() {
                found.push(String::new());
            }
            if let Some(last) = found.last_mut() {
                last.push_str(&plain(item.unwrap_or(start)));
                last.push(' ');
            }
        }
    }
    found.retain(|paragraph| !paragraph.trim().is_empty());
    found
}

/// The text of an item of a list.
fn item(line: &str) -> Option<&str> {
    let number = line.find(|c: char| !c.is_ascii_digit()).unwrap_or_default();
    let numbered = line[number..].strip_prefix(". ").filter(|_| number > 0);
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered)
}

/// Without the addresses of links; code is one word.
fn plain(line: &str) -> String {
    let mut out = String::new();
    for (number, part) in line.split('`').enumerate() {
        out.push_str(if number % 2 == 0 { part } else { "X" });
    }
    while let Some(at) = out.find("](") {
        let end = out[at..].find(')').map_or(out.len(), |end| at + end + 1);
        out.replace_range(at..end, "");
    }
    out.replace('[', "")
}

/// Parts that end in a full stop, a mark or a colon before a capital letter.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut words = paragraph.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if let Some(last) = found.last_mut() {
            last.push_str(word);
            last.push(' ');
        }
        let ends = word.ends_with(['.', '!', '?', ':']);
        let begins =
            |next: &&str| next.starts_with(|c: char| c.is_uppercase() || "`\"'(".contains(c));
        if ends && words.peek().is_some_and(begins) {
            found.push(String::new());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_counted_without_code_tables_and_headings() {
        let mut prose = Prose::default();
        prose.add(
            "# A b c d e\n\nOne two [three](b.md \"c d e\"). Four `a b c` five\nsix.\n\n\
             ```\nx y z\n```\n| a b c |\n",
        );
        assert_eq!((prose.words, prose.sentences, prose.longest_paragraph), (7, 2, 7));
        let mut prose = Prose::default();
        prose.add("- What is it of which we spoke?\n- one two three\n1. Four five six seven.\n");
        assert_eq!(
            (prose.what, prose.which, prose.sentences, prose.longest_paragraph),
            (1, 1, 3, 7)
        );
        prose.add(&format!("A {}.\n", "word ".repeat(40).trim()));
        assert_eq!(prose.long, 1);
    }
}
