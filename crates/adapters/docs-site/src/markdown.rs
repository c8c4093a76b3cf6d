//! Renders Markdown for the site: headings with anchors, links between files as links between pages, code and
//! tables in boxes that scroll. Also extracts the text under each heading, for the search.

use std::collections::HashMap;

use pulldown_cmark::html::push_html;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Stands before and after each block of code in the text of a section.
pub(crate) const CODE: &str = "\u{1}";

/// A rendered file.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    /// The text of the first-level heading.
    pub(crate) title: String,
    pub(crate) html: String,
    pub(crate) sections: Vec<Section>,
}

/// A heading, and the text under it.
#[derive(Debug)]
pub(crate) struct Section {
    /// The first level marks the text before any other heading.
    pub(crate) level: HeadingLevel,
    pub(crate) id: String,
    pub(crate) heading: String,
    pub(crate) text: String,
}

/// Renders a file. `follow` resolves the address of a link or picture; if it returns `None`, the link is
/// shown as text.
pub(crate) fn render(text: &str, follow: impl Fn(&str) -> Option<String>) -> Rendered {
    let mut rendered = Rendered::default();
    rendered.begin(HeadingLevel::H1, String::new(), String::new());
    let mut events: Vec<Event<'_>> = Vec::new();
    let mut ids = HashMap::new();
    // The start of the current heading, and its text so far.
    let mut heading: Option<(usize, String)> = None;
    let mut is_dead_link = false;
    for mut event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        let text = match &event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => text,
            Event::Start(Tag::CodeBlock(_)) | Event::End(TagEnd::CodeBlock) => CODE,
            Event::SoftBreak | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell) => " ",
            _ => "",
        };
        if let Some((_, heading)) = &mut heading {
            heading.push_str(text);
        } else if let Some(section) = rendered.sections.last_mut() {
            section.text.push_str(text);
        }
        match &mut event {
            // Raw HTML is shown as text.
            Event::Html(text) | Event::InlineHtml(text) => event = Event::Text(text.clone()),
            Event::Start(Tag::Heading { .. }) => heading = Some((events.len(), String::new())),
            Event::End(TagEnd::Heading(level)) => {
                let (start, text) = heading.take().unwrap_or_default();
                if *level == HeadingLevel::H1 {
                    rendered.title = text;
                } else {
                    let id = unique_id(&mut ids, &text);
                    if let Some(Event::Start(Tag::Heading { id: unset, .. })) = events.get_mut(start) {
                        *unset = Some(id.clone().into());
                    }
                    let anchor = format!(
                        " <a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to this section\">#</a>"
                    );
                    events.push(Event::InlineHtml(anchor.into()));
                    rendered.begin(*level, id, text);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                if let Some(address) = follow(dest_url) {
                    *dest_url = address.into();
                } else {
                    is_dead_link = true;
                    event = Event::InlineHtml("<span>".into());
                }
            }
            Event::End(TagEnd::Link | TagEnd::Image) if is_dead_link => {
                is_dead_link = false;
                event = Event::InlineHtml("</span>".into());
            }
            _ => {}
        }
        events.push(event);
    }
    push_html(&mut rendered.html, events.into_iter());
    rendered.html = boxed(&rendered.html);
    rendered
}

impl Rendered {
    fn begin(&mut self, level: HeadingLevel, id: String, heading: String) {
        self.sections.push(Section {
            level,
            id,
            heading,
            text: String::new(),
        });
    }
}

/// Puts code and tables into boxes that scroll. Text is escaped, so these tags always come from the renderer.
fn boxed(html: &str) -> String {
    html.replace("<pre><code", "<div class=\"code\"><pre tabindex=\"0\"><code")
        .replace("</code></pre>", "</code></pre></div>")
        .replace("<table>", "<div class=\"scroll\" tabindex=\"0\"><table>")
        .replace("</table>", "</table></div>")
        // The Content-Security-Policy forbids inline styles.
        .replace(" style=\"text-align: right\"", " class=\"number\"")
}

/// The id of a heading as code hosts generate it, so that links work in both places. The name of a release,
/// in brackets in the changelog, is its own id: `1.2.0`.
fn unique_id(ids: &mut HashMap<String, u32>, heading: &str) -> String {
    let heading = heading.to_lowercase();
    let release = heading.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let id: String = if let Some((version, _)) = release {
        version.to_owned()
    } else {
        let allowed = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        allowed.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    let times = ids.entry(id.clone()).or_default();
    *times = times.saturating_add(1);
    match *times {
        1 => id,
        more => format!("{id}-{}", more.saturating_sub(1)),
    }
}
