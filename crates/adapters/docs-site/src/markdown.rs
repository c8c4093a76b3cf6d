//! Markdown as the site shows it: anchors on headings, links between files as links between pages, coloured code, tables that
//! scroll in a box of their own; and the text of each passage, for the search.

mod links;
#[cfg(test)]
mod tests;
mod writer;

use std::iter::once;

use pulldown_cmark::html::push_html;
use pulldown_cmark::{Event, Options, Parser};

pub(crate) use self::links::Links;
use self::writer::Writer;
use crate::highlight;

/// A text that was rendered.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    /// What its heading of the first level says.
    pub(crate) title: String,
    pub(crate) html: String,
    /// The headings of the second and third level.
    pub(crate) headings: Vec<Heading>,
    pub(crate) passages: Vec<Passage>,
    /// Links to files that the site does not have; they are shown as text.
    pub(crate) unlinked: Vec<String>,
}

/// A heading that can be linked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    /// 2 or 3.
    pub(crate) level: u8,
    pub(crate) id: String,
    pub(crate) text: String,
}

/// What stands under one heading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passage {
    /// The heading's id; empty before the first.
    pub(crate) id: String,
    pub(crate) heading: String,
    pub(crate) text: String,
}

/// Renders a whole file.
pub(crate) fn render(text: &str, links: &Links) -> Rendered {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut writer = Writer::new(links);
    for event in Parser::new_ext(text, options) {
        writer.take(event);
    }
    writer.finish()
}

/// Renders a few words or paragraphs that link nowhere.
pub(crate) fn fragment(text: &str) -> String {
    render(text, &Links::from_file("")).html
}

/// Code in its box, as it stands in pages.
pub(crate) fn code_block(language: &str, code: &str) -> String {
    let code = highlight::html(language, code.trim_end());
    format!("<div class=\"code\"><pre tabindex=\"0\"><code>{code}</code></pre></div>\n")
}

/// Text within HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    push_html(&mut html, once(Event::Text(text.into())));
    html
}
