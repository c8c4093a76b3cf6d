//! Sequence diagrams as lists: what Mermaid would draw is told step by step, which needs no script and reads aloud.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::markdown::escaped;

/// What stands between sender and receiver, those first that others are a part of. A cross at the end is a message that was lost,
/// which its words tell too.
const ARROWS: [&str; 8] = ["-->>", "->>", "--x", "-x", "--)", "-)", "-->", "->"];

/// The list, or nothing where the text is no sequence diagram.
pub(crate) fn list(text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    if lines.next()? != "sequenceDiagram" {
        return None;
    }
    let mut names = HashMap::new();
    let mut html = "<ol class=\"sequence\">\n".to_owned();
    for line in lines {
        if let Some((short, long)) = line
            .strip_prefix("participant ")
            .and_then(|one| one.split_once(" as "))
        {
            names.insert(short, long);
        } else if let Some((places, said)) = line
            .strip_prefix("Note over ")
            .and_then(|note| note.split_once(": "))
        {
            let places: Vec<_> = places.split(',').map(|place| named(&names, place)).collect();
            step(&mut html, &places.join(", "), said)?;
        } else {
            let (ends, said) = line.split_once(": ")?;
            let (from, to) = ARROWS.iter().find_map(|arrow| ends.split_once(arrow))?;
            let (from, to) = (named(&names, from), named(&names, to));
            let who = if from == to {
                from
            } else {
                format!("{from} → {to}")
            };
            step(&mut html, &who, said)?;
        }
    }
    Some(html + "</ol>\n")
}

fn named(names: &HashMap<&str, &str>, short: &str) -> String {
    let short = short.trim();
    names.get(short).copied().unwrap_or(short).to_owned()
}

fn step(html: &mut String, who: &str, said: &str) -> Option<()> {
    writeln!(html, "<li><b>{}</b> {}</li>", escaped(who), escaped(said)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagram_becomes_steps() {
        let text = "sequenceDiagram\n participant S as The service\n S->>R: POST <x>\n R-->>S: 204\n R->>R: thinks\n R--xS: nothing\n S-)R: later\n Note over S,R: done";
        assert_eq!(
            list(text).unwrap(),
            "<ol class=\"sequence\">\n<li><b>The service → R</b> POST &lt;x&gt;</li>\n<li><b>R → The service</b> 204</li>\n\
             <li><b>R</b> thinks</li>\n<li><b>R → The service</b> nothing</li>\n<li><b>The service → R</b> later</li>\n\
             <li><b>The service, R</b> done</li>\n</ol>\n"
        );
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        assert_eq!(list("flowchart LR\n a --> b"), None);
        assert_eq!(list("sequenceDiagram\n loop every minute"), None);
    }
}
