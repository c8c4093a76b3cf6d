//! The catalogue of errors: a page for each code, of the file that a test holds complete against the table of codes and the
//! OpenAPI document.

use std::collections::BTreeMap;

use askama::Template;
use web::Code;

use crate::markdown::{self, Heading, Links, Passage};
use crate::reference::{Operation, Reference};
use crate::site::{Draft, Kind};

/// Where the catalogue begins; a code's page lies below it, under the code.
pub(crate) const PATH: &str = "/docs/errors";

const TEXT: &str = include_str!("../../../../docs/ERRORS.md");

/// The catalogue as it is written.
pub(crate) struct Catalogue {
    /// What holds for all, as HTML.
    intro: String,
    parts: Vec<Part>,
}

/// The codes of one part of the service.
struct Part {
    /// Such as `/v1`.
    name: String,
    id: String,
    /// As HTML.
    about: String,
    errors: Vec<Explained>,
}

/// A code, explained.
#[derive(Clone)]
pub(crate) struct Explained {
    pub(crate) code: String,
    /// The status, and where it is another one.
    status: String,
    /// The part that answers it.
    part: String,
    /// As HTML.
    when: String,
    /// As HTML.
    remedy: String,
    /// As HTML.
    example: String,
    user_message: Option<&'static str>,
}

#[derive(Template)]
#[template(path = "errors.html")]
struct Listed<'a> {
    catalogue: &'a Catalogue,
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    code: &'a str,
    meanings: &'a [Explained],
    /// Of the headings below each meaning: several meanings have headings of their own.
    level: u8,
    operations: Vec<&'a Operation>,
}

impl Catalogue {
    /// Reads the file: parts are headings of the second level, codes of the third.
    pub(crate) fn read(text: &str) -> Self {
        let mut parts = text.split("\n## ");
        let intro = parts.next().unwrap_or_default();
        let intro = intro.split_once('\n').map_or("", |(_, rest)| rest);
        Self {
            intro: markdown::render(intro, &Links::from_file("docs/ERRORS.md")).html,
            parts: parts.map(Part::read).collect(),
        }
    }

    /// Every code with what it means where.
    pub(crate) fn codes(&self) -> BTreeMap<&str, Vec<Explained>> {
        let mut codes: BTreeMap<&str, Vec<Explained>> = BTreeMap::new();
        for error in self.parts.iter().flat_map(|part| &part.errors) {
            codes.entry(&error.code).or_default().push(error.clone());
        }
        codes
    }
}

impl Part {
    fn read(text: &str) -> Self {
        let mut entries = text.split("\n### ");
        let head = entries.next().unwrap_or_default();
        let (name, about) = head.split_once('\n').unwrap_or((head, ""));
        let name = name.replace('`', "");
        Self {
            errors: entries
                .filter_map(|entry| Explained::read(&name, entry))
                .collect(),
            id: name
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric())
                .collect(),
            about: markdown::fragment(about),
            name,
        }
    }
}

impl Explained {
    /// Reads `` `code` (status) `` and what stands below it.
    fn read(part: &str, entry: &str) -> Option<Self> {
        let (heading, body) = entry.split_once('\n')?;
        let mut words = heading.split('`');
        let (oauth, code) = (words.next()?.contains("OAuth"), words.next()?);
        let status = words.collect::<Vec<_>>().join("`");
        let status = status.trim().strip_prefix('(')?.strip_suffix(')')?;
        let (_, rest) = body.split_once("**When.**")?;
        let (when, rest) = rest.split_once("**What to do.**")?;
        let (remedy, rest) = rest.split_once("```")?;
        let (language, rest) = rest.split_once('\n')?;
        let (example, _) = rest.split_once("\n```")?;
        let known = Code::ALL.iter().find(|known| known.as_str() == code && !oauth);
        Some(Self {
            code: code.to_owned(),
            status: markdown::fragment(status)
                .replace("<p>", "")
                .replace("</p>\n", ""),
            part: part.to_owned(),
            when: markdown::fragment(when),
            remedy: markdown::fragment(remedy),
            example: markdown::code_block(language, &indented(example)),
            user_message: known.and_then(|code| code.user_message()),
        })
    }
}

/// JSON over many lines; anything else as it is.
fn indented(example: &str) -> String {
    match web::schema::Node::parse(example) {
        web::schema::Node::Null => example.to_owned(),
        json => format!("{json:#}"),
    }
}

/// The pages of the catalogue.
pub(crate) fn drafts(reference: &Reference) -> askama::Result<Vec<Draft>> {
    let catalogue = Catalogue::read(TEXT);
    let headings = catalogue.parts.iter().map(|part| Heading {
        level: 2,
        id: part.id.clone(),
        text: part.name.clone(),
    });
    let mut drafts = vec![Draft {
        path: PATH.to_owned(),
        label: "All codes".to_owned(),
        title: "Errors".to_owned(),
        headings: headings.collect(),
        passages: vec![Passage {
            text: crate::search::text_of(&catalogue.intro),
            ..Passage::default()
        }],
        ..Draft::new(
            Kind::Error,
            Listed {
                catalogue: &catalogue,
            }
            .render()?,
        )
    }];
    for (code, meanings) in &catalogue.codes() {
        let page = ErrorPage {
            code,
            meanings,
            level: if meanings.len() > 1 { 3 } else { 2 },
            operations: reference.with_code(code),
        };
        let text: Vec<_> = meanings
            .iter()
            .map(|one| crate::search::text_of(&format!("{}{}", one.when, one.remedy)))
            .collect();
        drafts.push(Draft {
            path: format!("{PATH}/{code}"),
            title: (*code).to_owned(),
            passages: vec![Passage {
                text: text.join(" "),
                ..Passage::default()
            }],
            ..Draft::new(Kind::Error, page.render()?)
        });
    }
    Ok(drafts)
}
