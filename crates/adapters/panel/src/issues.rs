//! What is wrong with the fields of a form, for the summary above it and beside each field.

use kernel::Violations;

use crate::texts::Texts;

/// The sentences, each with the field that it is about, in field order.
#[derive(Debug, Default)]
pub(crate) struct Issues(Vec<Issue>);

/// Something that is wrong with a field.
#[derive(Debug)]
pub(crate) struct Issue {
    pub(crate) field: &'static str,
    /// What the form calls the field, for the summary; empty where the text says enough.
    pub(crate) label: &'static str,
    pub(crate) text: String,
}

/// The fields of every form, so that what the domain calls a field finds its place.
const FIELDS: [&str; 13] = [
    "name",
    "description",
    "documentation_url",
    "purpose",
    "client_type",
    "redirect_uris",
    "scopes",
    "accept_terms",
    "expires_at",
    "password",
    "current_password",
    "new_password",
    "email",
];

impl Issues {
    /// Nothing wrong.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// One thing wrong.
    pub(crate) fn one(field: &'static str, text: impl Into<String>) -> Self {
        let mut issues = Self::none();
        issues.add(field, text);
        issues
    }

    /// What the domain found, in the words of a language. The elements of the list of scopes are not told apart: nobody fills
    /// them in by hand.
    pub(crate) fn of(violations: &Violations, t: &Texts) -> Self {
        let mut issues = Self::none();
        for (path, reason) in violations.iter() {
            let (name, index) = path.split_once('[').unwrap_or((path, ""));
            let Some(field) = FIELDS.into_iter().find(|field| *field == name) else {
                continue;
            };
            let reason = reason.to_string();
            let number = index
                .strip_suffix(']')
                .and_then(|index| index.parse::<usize>().ok());
            let text = match number.filter(|_| field == "redirect_uris") {
                Some(number) => (t.element)(number.saturating_add(1), &reason),
                None => (t.reason)(&reason),
            };
            let label = label(field, t);
            issues.0.push(Issue { field, label, text });
        }
        issues
    }

    pub(crate) fn add(&mut self, field: &'static str, text: impl Into<String>) {
        self.0.push(Issue {
            field,
            label: "",
            text: text.into(),
        });
    }

    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    pub(crate) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    pub(crate) fn all(&self) -> &[Issue] {
        &self.0
    }

    pub(crate) fn about(&self, field: &str) -> bool {
        self.0.iter().any(|issue| issue.field == field)
    }

    /// The sentences about a field.
    pub(crate) fn texts<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a str> {
        let about = self.0.iter().filter(move |issue| issue.field == field);
        about.map(|issue| issue.text.as_str())
    }

    /// The ids of what describes a field: its hint, where it has one, and what is wrong with it.
    pub(crate) fn described(&self, field: &str, has_hint: bool) -> String {
        let hint = has_hint.then(|| format!("{field}-hint"));
        let wrong = self.about(field).then(|| format!("{field}-error"));
        let ids: Vec<_> = [hint, wrong].into_iter().flatten().collect();
        ids.join(" ")
    }
}

fn label(field: &str, t: &Texts) -> &'static str {
    match field {
        "name" => t.form.name,
        "description" => t.form.description,
        "documentation_url" => t.form.documentation_url,
        "purpose" => t.form.purpose,
        "client_type" => t.form.client_type,
        "redirect_uris" => t.form.redirect_uris,
        "scopes" => t.form.scopes,
        "expires_at" => t.tokens.expires_at,
        "password" | "new_password" => t.passwords.new,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use kernel::Invalid;

    use super::*;
    use crate::texts::ENGLISH;

    #[test]
    fn elements_of_a_list_are_told_by_their_number() {
        let mut violations = Violations::new();
        violations.add("name", Invalid::new("must be nicer"));
        violations.add("redirect_uris[1]", Invalid::new("must not have a fragment"));
        let issues = Issues::of(&violations, &ENGLISH);
        let texts: Vec<_> = issues.all().iter().map(|issue| issue.text.as_str()).collect();
        assert_eq!(texts, ["Must be nicer.", "Address 2: must not have a fragment."]);
        assert_eq!(issues.described("name", true), "name-hint name-error");
        assert_eq!(issues.described("email", false), "");
    }
}
