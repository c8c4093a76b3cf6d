//! Parses the forms of a page, as a browser without scripts does.

/// A form with the values that it would submit.
#[derive(Debug, Clone)]
pub struct Form {
    pub action: String,
    /// `get` or `post`.
    pub method: String,
    /// Fields and values in document order.
    pub fields: Vec<(String, String)>,
    /// Named buttons: name and value.
    pub buttons: Vec<(String, String)>,
}

impl Form {
    /// Sets a field, or checks one box only: replaces the field's values.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// Adds a value: checks one more box, or repeats a field.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes a field.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(other, _)| other != name);
        self
    }

    /// Presses a button of the form.
    #[must_use]
    pub fn press(self, name: &str, value: &str) -> Self {
        let button = (name.to_owned(), value.to_owned());
        assert!(self.buttons.contains(&button), "no button {button:?} in {self:?}");
        self.and(name, value)
    }

    /// The value of a field.
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn body(&self) -> String {
        encoded(&self.fields)
    }
}

/// Form-encodes pairs, as for a form or a query.
pub fn encoded(pairs: &[(impl AsRef<str>, impl AsRef<str>)]) -> String {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        body.append_pair(name.as_ref(), value.as_ref());
    }
    body.finish()
}

/// All forms of a page, in document order.
pub(crate) fn forms(html: &str) -> Vec<Form> {
    let (mut found, mut area) = (Vec::<Form>::new(), None);
    for (start, _) in html.match_indices('<') {
        let Some(tag) = Tag::at(html, start) else { continue };
        match (tag.name, found.last_mut()) {
            ("form", _) => found.push(Form {
                action: tag.attribute("action").expect("a form has an action"),
                method: tag.attribute("method").unwrap_or_else(|| "get".to_owned()),
                fields: Vec::new(),
                buttons: Vec::new(),
            }),
            ("textarea", Some(_)) => area = tag.attribute("name").map(|name| (name, tag.end)),
            ("/textarea", Some(form)) => {
                let (name, from) = area.take().expect("a textarea with a name");
                let text = &html[from..start];
                form.fields
                    .push((name, unescaped(text.strip_prefix('\n').unwrap_or(text))));
            }
            ("input", Some(form)) => form.fields.extend(tag.sent()),
            ("button", Some(form)) => form
                .buttons
                .extend(tag.attribute("name").zip(tag.attribute("value"))),
            _ => {}
        }
    }
    found
}

struct Tag<'a> {
    name: &'a str,
    text: &'a str,
    /// The offset after the tag.
    end: usize,
}

impl<'a> Tag<'a> {
    fn at(html: &'a str, start: usize) -> Option<Self> {
        // Values contain no `>`: the templates escape it.
        let end = start + html[start..].find('>')?;
        let text = &html[start + 1..end];
        let name = text.split_ascii_whitespace().next()?;
        Some(Self {
            name,
            text,
            end: end + 1,
        })
    }

    fn attribute(&self, name: &str) -> Option<String> {
        let after = self.text.split_once(&format!(" {name}=\""))?.1;
        Some(unescaped(after.split_once('"')?.0))
    }

    /// Name and value that an untouched input submits.
    fn sent(&self) -> Option<(String, String)> {
        let box_like = matches!(self.attribute("type").as_deref(), Some("checkbox" | "radio"));
        let ticked = self.text.split_ascii_whitespace().any(|word| word == "checked");
        (!box_like || ticked)
            .then(|| {
                (
                    self.attribute("name"),
                    self.attribute("value").unwrap_or_default(),
                )
            })
            .and_then(|(name, value)| Some((name?, value)))
    }
}

/// Text with its character references resolved.
pub(crate) fn unescaped(text: &str) -> String {
    let plain = quick_xml::escape::unescape(text);
    plain.expect("whole character references").into_owned()
}
