//! Markdown as the site shows it: anchors on headings, links between files as links between pages, coloured code, tables that
//! scroll in a box of their own; and the text of each passage, for the search.

use std::collections::HashMap;
use std::iter::once;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pulldown_cmark::html::push_html;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::{guides, highlight, sequence};

/// The pictures of pages, found when the program is built: path in the repository and content.
const PICTURES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pictures.rs"));

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

/// How links of a text are followed.
pub(crate) struct Links {
    folder: String,
}

impl Links {
    /// Of a file of the repository, such as `docs/guide/orders.md`.
    pub(crate) fn from_file(file: &str) -> Self {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Where a link leads on the site; nothing where the site does not have it.
    fn follow(&self, link: &str) -> Option<String> {
        if link.starts_with('#') || link.starts_with("https://") || link.starts_with("http://") {
            return Some(link.to_owned());
        }
        let (file, anchor) = link.find('#').map_or((link, ""), |at| link.split_at(at));
        Some(format!("{}{anchor}", guides::page_of(&self.path_of(file))?))
    }

    /// What a picture's link stands for: the picture itself, within the page.
    fn picture(&self, link: &str) -> Option<String> {
        embedded(PICTURES, &self.path_of(link))
    }

    /// The path in the repository that a relative link names.
    fn path_of(&self, file: &str) -> String {
        let mut parts: Vec<&str> = self.folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in file.split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop()),
                name => parts.push(name),
            }
        }
        parts.join("/")
    }
}

/// The address of a picture that is within the page itself.
fn embedded(pictures: &[(&str, &str)], path: &str) -> Option<String> {
    let (_, svg) = pictures.iter().find(|(file, _)| *file == path)?;
    Some(format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg)))
}

/// Renders a whole file.
pub(crate) fn render(text: &str, links: &Links) -> Rendered {
    let mut writer = Writer {
        links,
        done: Rendered {
            passages: vec![Passage::default()],
            ..Rendered::default()
        },
        ids: HashMap::new(),
        events: Vec::new(),
        heading: None,
        code: None,
        shown_links: Vec::new(),
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    for event in Parser::new_ext(text, options) {
        writer.take(event);
    }
    push_html(&mut writer.done.html, writer.events.into_iter());
    // Styles within the page are not allowed (Content-Security-Policy).
    writer.done.html = writer
        .done
        .html
        .replace(" style=\"text-align: right\"", " class=\"number\"");
    writer.done.passages.retain(|passage| !passage.text.is_empty());
    writer.done
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

struct Writer<'a> {
    links: &'a Links,
    done: Rendered,
    /// How often each id was given.
    ids: HashMap<String, u32>,
    events: Vec<Event<'a>>,
    /// The heading that is being read.
    heading: Option<(HeadingLevel, Vec<Event<'a>>, String)>,
    /// The language and text of the code that is being read.
    code: Option<(String, String)>,
    /// Whether each of the links that are open is shown as one.
    shown_links: Vec<bool>,
}

impl<'a> Writer<'a> {
    fn take(&mut self, event: Event<'a>) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                self.heading = Some((level, Vec::new(), String::new()));
            }
            Event::End(TagEnd::Heading(_)) => self.end_heading(),
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    // Behind the language may stand what tests do with the code.
                    CodeBlockKind::Fenced(info) => info.split(' ').next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Event::End(TagEnd::CodeBlock) => self.end_code(),
            Event::Start(Tag::Table(alignments)) => {
                self.put(Event::Html("<div class=\"scroll\" tabindex=\"0\">".into()));
                self.put(Event::Start(Tag::Table(alignments)));
            }
            Event::End(TagEnd::Table) => {
                self.put(Event::End(TagEnd::Table));
                self.put(Event::Html("</div>\n".into()));
            }
            Event::Start(Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            }) => {
                let followed = self.links.follow(&dest_url);
                self.shown_links.push(followed.is_some());
                match followed {
                    Some(dest_url) => self.put(Event::Start(Tag::Link {
                        link_type,
                        dest_url: dest_url.into(),
                        title,
                        id,
                    })),
                    None => self.done.unlinked.push(dest_url.to_string()),
                }
            }
            Event::End(TagEnd::Link) => {
                if self.shown_links.pop() == Some(true) {
                    self.put(Event::End(TagEnd::Link));
                }
            }
            Event::Start(Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            }) => {
                let shown = self.links.picture(&dest_url);
                if shown.is_none() {
                    self.done.unlinked.push(self.links.path_of(&dest_url));
                }
                let dest_url = shown.map_or(dest_url, Into::into);
                self.put(Event::Start(Tag::Image {
                    link_type,
                    dest_url,
                    title,
                    id,
                }));
            }
            // The files have no HTML of their own: what looks like it is meant as text.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.text(&text, Event::Text(text.clone()));
            }
            Event::Code(text) => self.text(&text, Event::Code(text.clone())),
            Event::SoftBreak => self.text(" ", Event::SoftBreak),
            Event::End(end @ (TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell)) => {
                self.say(" ");
                self.put(Event::End(end));
            }
            other => self.put(other),
        }
    }

    fn put(&mut self, event: Event<'a>) {
        match &mut self.heading {
            Some((_, events, _)) => events.push(event),
            None => self.events.push(event),
        }
    }

    fn text(&mut self, text: &str, event: Event<'a>) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
        } else if let Some((_, events, said)) = &mut self.heading {
            said.push_str(text);
            events.push(event);
        } else {
            self.say(text);
            self.events.push(event);
        }
    }

    /// Adds to the passage that is being read.
    fn say(&mut self, text: &str) {
        if let Some(passage) = self.done.passages.last_mut() {
            passage.text.push_str(text);
        }
    }

    fn end_heading(&mut self) {
        let Some((level, events, text)) = self.heading.take() else {
            return;
        };
        if level == HeadingLevel::H1 {
            self.events.push(Event::Html("<h1>".into()));
            self.events.extend(events);
            self.events.push(Event::Html("</h1>\n".into()));
            self.done.title = text;
            return;
        }
        let id = self.id(&text);
        self.events
            .push(Event::Html(format!("<{level} id=\"{id}\">").into()));
        self.events.extend(events);
        let anchor = format!(
            " <a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to this section\">#</a></{level}>\n"
        );
        self.events.push(Event::Html(anchor.into()));
        let known = match level {
            HeadingLevel::H2 => Some(2),
            HeadingLevel::H3 => Some(3),
            _ => None,
        };
        if let Some(level) = known {
            let (id, text) = (id.clone(), text.clone());
            self.done.headings.push(Heading { level, id, text });
        }
        self.done.passages.push(Passage {
            id,
            heading: text,
            text: String::new(),
        });
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else {
            return;
        };
        self.say(&code);
        let steps = if language == "mermaid" {
            sequence::list(&code)
        } else {
            None
        };
        let html = steps.unwrap_or_else(|| code_block(&language, &code));
        self.put(Event::Html(html.into()));
    }

    /// The id of a heading as code hosts make it, so that links work in both places.
    fn id(&mut self, text: &str) -> String {
        let kept = text
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect::<String>();
        let times = self.ids.entry(kept.clone()).or_default();
        let id = if *times == 0 {
            kept
        } else {
            format!("{kept}-{times}")
        };
        *times = times.saturating_add(1);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Rendered {
        render(text, &Links::from_file("docs/guide/offers.md"))
    }

    #[test]
    fn headings_have_anchors_of_their_own_and_passages_below_them() {
        let page = rendered(
            "# The *title*\n\nBefore.\n\n## What `x` is\n\nOne\ntwo.\n\n## What x is\n\n```sh no-run\nls\n```\n",
        );
        assert_eq!(page.title, "The title");
        let ids: Vec<_> = page.headings.iter().map(|heading| heading.id.as_str()).collect();
        assert_eq!(ids, ["what-x-is", "what-x-is-1"]);
        assert!(
            page.html.contains(
                "<h2 id=\"what-x-is\">What <code>x</code> is <a class=\"anchor\" href=\"#what-x-is\""
            )
        );
        let texts: Vec<_> = page.passages.iter().map(|passage| passage.text.trim()).collect();
        assert_eq!(texts, ["Before.", "One two.", "ls"]);
    }

    #[test]
    fn links_between_files_are_links_between_pages() {
        let page = rendered(
            "[a](orders.md#pages) [b](../OPERATIONS.md) [c](../../LICENSE) [d](#x) [e](https://x.example/y)",
        );
        assert_eq!(
            page.html,
            "<p><a href=\"/docs/guide/orders#pages\">a</a> <a href=\"/docs/operations\">b</a> c <a href=\"#x\">d</a> \
             <a href=\"https://x.example/y\">e</a></p>\n"
        );
        assert_eq!(page.unlinked, ["../../LICENSE"]);
    }

    #[test]
    fn pictures_are_in_the_page_itself() {
        let pictures = [("docs/performance/x.svg", "<svg/>")];
        assert_eq!(
            embedded(&pictures, "docs/performance/x.svg").unwrap(),
            "data:image/svg+xml;base64,PHN2Zy8+"
        );
        let page = render(
            "![x](performance/none.svg)",
            &Links::from_file("docs/PERFORMANCE.md"),
        );
        assert_eq!(page.unlinked, ["docs/performance/none.svg"]);
    }

    #[test]
    fn markup_is_text() {
        let page = rendered("a <script>b</script>\n\n<div>c</div>\n");
        assert!(
            !page.html.contains("<script") && !page.html.contains("<div>"),
            "{}",
            page.html
        );
    }

    #[test]
    fn tables_scroll_by_themselves() {
        let page = rendered("| a | b |\n|---|---|\n| 1 | 2 |\n");
        assert!(
            page.html
                .starts_with("<div class=\"scroll\" tabindex=\"0\"><table>"),
            "{}",
            page.html
        );
        assert!(page.html.ends_with("</table>\n</div>\n"), "{}", page.html);
        let numbers = rendered("| a |\n|--:|\n| 1 |\n").html;
        assert!(
            numbers.contains("<td class=\"number\">1</td>") && !numbers.contains("style"),
            "{numbers}"
        );
    }
}
