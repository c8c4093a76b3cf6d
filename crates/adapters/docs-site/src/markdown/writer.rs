//! The events of Markdown, turned into HTML and passages.

use std::collections::HashMap;

use pulldown_cmark::html::push_html;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};

use super::{Heading, Links, Passage, Rendered, code_block};
use crate::sequence;

/// Takes the events of a file one by one, and writes what is shown and what the search finds.
pub(super) struct Writer<'a> {
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
    pub(super) fn new(links: &'a Links) -> Self {
        Self {
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
        }
    }

    pub(super) fn take(&mut self, event: Event<'a>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            // The files have no HTML of their own: what looks like it is meant as text.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.text(&text, Event::Text(text.clone()));
            }
            Event::Code(text) => self.text(&text, Event::Code(text.clone())),
            Event::SoftBreak => self.text(" ", Event::SoftBreak),
            other => self.put(other),
        }
    }

    fn start(&mut self, tag: Tag<'a>) {
        match tag {
            Tag::Heading { level, .. } => self.heading = Some((level, Vec::new(), String::new())),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    // Behind the language may stand what tests do with the code.
                    CodeBlockKind::Fenced(info) => info.split(' ').next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::Table(alignments) => {
                self.put(Event::Html("<div class=\"scroll\" tabindex=\"0\">".into()));
                self.put(Event::Start(Tag::Table(alignments)));
            }
            Tag::Link {
                link_type,
                dest_url,
                title,
                id,
            } => {
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
            Tag::Image {
                link_type,
                dest_url,
                title,
                id,
            } => {
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
            other => self.put(Event::Start(other)),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => self.end_heading(),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::Table => {
                self.put(Event::End(TagEnd::Table));
                self.put(Event::Html("</div>\n".into()));
            }
            TagEnd::Link => {
                if self.shown_links.pop() == Some(true) {
                    self.put(Event::End(TagEnd::Link));
                }
            }
            TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell => {
                self.say(" ");
                self.put(Event::End(tag));
            }
            other => self.put(Event::End(other)),
        }
    }

    /// The whole, when all events were taken.
    pub(super) fn finish(mut self) -> Rendered {
        push_html(&mut self.done.html, self.events.into_iter());
        // Styles within the page are not allowed (Content-Security-Policy).
        self.done.html = self
            .done
            .html
            .replace(" style=\"text-align: right\"", " class=\"number\"");
        self.done.passages.retain(|passage| !passage.text.is_empty());
        self.done
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
