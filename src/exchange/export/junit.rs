//! JUnit XML as build servers read it: the schema of Jenkins' xUnit plugin (junit-10.xsd), which
//! GitLab and GitHub's reporters accept.

use std::{borrow::Cow, io};

use quick_xml::{Writer, events::BytesText, writer::ElementWriter};

use super::checks::{Check, CheckedRun, Outcome};
use crate::plain::plain;

type Xml = Writer<Vec<u8>>;

/// A test suite a run and a test case a check: a limit that is exceeded is a failure, an invalid
/// run an error, and what the samples do not decide is skipped, each with its reason.
pub(super) fn write(runs: &[CheckedRun]) -> io::Result<Vec<u8>> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    xml.get_mut().extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.create_element("testsuites")
        .write_inner_content(|xml| runs.iter().try_for_each(|run| suite(xml, run)))?;
    let mut bytes = xml.into_inner();
    bytes.push(b'\n');
    Ok(bytes)
}

fn suite(xml: &mut Xml, run: &CheckedRun) -> io::Result<()> {
    let count = |outcomes: &[Outcome]| {
        let counted = run.checks.iter().filter(|check| outcomes.contains(&check.outcome));
        counted.count().to_string()
    };
    let values = [
        ("name", run.measured.clone()),
        ("hostname", run.hostname.clone()),
        ("timestamp", without_zone(&run.started_at).to_owned()),
        ("time", format!("{:.3}", run.duration_s)),
        ("tests", run.checks.len().to_string()),
        ("failures", count(&[Outcome::Failed])),
        ("errors", count(&[Outcome::Invalid, Outcome::NotRun])),
        ("skipped", count(&[Outcome::Inconclusive])),
    ];
    with(xml.create_element("testsuite"), &values).write_inner_content(|xml| {
        xml.create_element("properties").write_inner_content(|xml| {
            let values = [
                ("run", &run.name),
                ("run_id", &run.id),
                ("measured", &run.line),
                ("command", &run.command),
            ];
            values.into_iter().try_for_each(|(name, value)| {
                let value = [("name", name.to_owned()), ("value", value.clone())];
                with(xml.create_element("property"), &value).write_empty().map(drop)
            })
        })?;
        run.checks.iter().try_for_each(|check| case(xml, run, check))?;
        let headline = allowed(&run.headline);
        let said = BytesText::new(&headline);
        xml.create_element("system-out").write_text_content(said).map(drop)
    })?;
    Ok(())
}

fn case(xml: &mut Xml, run: &CheckedRun, check: &Check) -> io::Result<()> {
    let class = format!("tardy.{}", run.class(check.series.as_deref()));
    // All are of the same samples: the time that they took counts once.
    let is_first = run.checks.first() == Some(check);
    let seconds = if is_first { run.duration_s } else { 0.0 };
    let time = format!("{seconds:.3}");
    let values = [("name", check.name.clone()), ("classname", class), ("time", time)];
    let case = with(xml.create_element("testcase"), &values);
    let (element, kind) = match check.outcome {
        Outcome::Passed => {
            let reason = allowed(&check.reason);
            let said = |xml: &mut Xml| {
                let text = BytesText::new(&reason);
                xml.create_element("system-out").write_text_content(text).map(drop)
            };
            return case.write_inner_content(said).map(drop);
        }
        Outcome::Failed => ("failure", Some("limit")),
        Outcome::Invalid => ("error", Some("invalid")),
        Outcome::NotRun => ("error", Some("not run")),
        Outcome::Inconclusive => ("skipped", None),
    };
    let mut values = vec![("message", reason(check))];
    values.extend(kind.map(|kind| ("type", kind.to_owned())));
    let why = |xml: &mut Xml| with(xml.create_element(element), &values).write_empty().map(drop);
    case.write_inner_content(why).map(drop)
}

fn reason(check: &Check) -> String {
    match check.outcome {
        Outcome::Inconclusive => format!("inconclusive: {}", check.reason),
        _ => check.reason.clone(),
    }
}

fn with<'a>(
    element: ElementWriter<'a, Vec<u8>>,
    values: &[(&'static str, String)],
) -> ElementWriter<'a, Vec<u8>> {
    values.iter().fold(element, |element, (name, value)| {
        element.with_attribute((*name, allowed(value).as_ref()))
    })
}

/// Text without what no XML document may contain, not even as a reference: control characters,
/// which are shown as their numbers, and two that are not characters (XML 1.0, production 2).
fn allowed(text: &str) -> Cow<'_, str> {
    let is_none = |c| matches!(c, '\u{fffe}' | '\u{ffff}');
    Cow::Owned(plain(text).replace(is_none, "\u{fffd}"))
}

/// The schema's date and time have no zone; here they are UTC.
fn without_zone(rfc3339: &str) -> &str {
    rfc3339.get(..19).unwrap_or(rfc3339)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        exchange::export::checks::tests::{document, gates},
        run::Document,
    };

    fn written(document: &Document) -> String {
        let run = CheckedRun::of(document, &gates());
        String::from_utf8(write(&[run]).unwrap()).unwrap()
    }

    #[test]
    fn each_check_is_a_case_with_its_outcome_and_reason() {
        let mut document = document();
        document.started_at = "2026-11-24T04:23:31.582Z".into();
        let text = written(&document);
        let suite = "<testsuite name=\"timer.idle\" hostname=\"\" \
                     timestamp=\"2026-11-24T04:23:31\" time=\"20.000\" tests=\"4\" \
                     failures=\"1\" errors=\"0\" skipped=\"1\">";
        assert!(text.contains(suite), "{text}");
        let case = "<testcase name=\"p99&lt;=80us\" classname=\"tardy.timer.idle.cpu0\" \
                    time=\"0.000\">";
        assert!(text.contains(case), "{text}");
        assert!(text.contains("<property name=\"run_id\" value=\"i\"/>"), "{text}");
        let failure = "<failure message=\"2.40 ms &amp; &lt;more&gt;\" type=\"limit\"/>";
        assert!(text.contains(failure), "{text}");
        assert!(text.contains("<skipped message=\"inconclusive: 0.5 to 2 ms\"/>"), "{text}");
    }

    #[test]
    fn whatever_a_run_is_called_the_document_can_be_read() {
        let mut document = document();
        document.name = "a\u{0}\u{1b}]52;\n<b>\"&'\u{ffff}\u{202e}".into();
        let text = written(&document);
        let mut reader = quick_xml::Reader::from_str(&text);
        let mut cases = 0;
        loop {
            match reader.read_event().unwrap() {
                quick_xml::events::Event::Start(start) => {
                    cases += usize::from(start.name().as_ref() == "testcase");
                    start.attributes().for_each(|value| drop(value.unwrap()));
                }
                quick_xml::events::Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(cases, 4);
        let is_forbidden = |c: char| c.is_control() && c != '\n' || c == '\u{ffff}';
        assert!(!text.contains(is_forbidden), "{text:?}");
    }
}
