//! What is wrong with the fields of a form, for the summary above it and beside each field.

use actix_web::http::StatusCode;
use kernel::Violations;

use crate::texts::Texts;

/// The sentences, each with the field that it is about, in field order; and the status of a page with them.
#[derive(Debug)]
pub(crate) struct Issues {
    list: Vec<Issue>,
    pub(crate) status: StatusCode,
}

/// Something that is wrong with a field.
#[derive(Debug)]
pub(crate) struct Issue {
    pub(crate) field: String,
    /// What the form calls the field, for the summary; empty where the text says enough.
    pub(crate) label: &'static str,
    pub(crate) text: String,
}

impl Issues {
    /// Nothing wrong.
    pub(crate) const fn none() -> Self {
        let list = Vec::new();
        let status = StatusCode::OK;
        Self { list, status }
    }

    /// One thing wrong.
    pub(crate) fn one(field: &str, text: &str) -> Self {
        let mut issues = Self::none();
        issues.add(field, text);
        issues
    }

    /// One thing that is wrong with what there is already.
    pub(crate) fn conflict(field: &str, text: &str) -> Self {
        Self {
            status: StatusCode::CONFLICT,
            ..Self::one(field, text)
        }
    }

    /// What the domain found, in the words of a language.
    pub(crate) fn of(violations: &Violations, t: &Texts) -> Self {
        let mut issues = Self::none();
        issues.append(violations, t);
        issues
    }

    /// Adds what the domain found. The elements of the list of scopes are not told apart: nobody fills them in by hand.
    pub(crate) fn append(&mut self, violations: &Violations, t: &Texts) {
        for (path, reason) in violations.iter() {
            let (field, index) = path.split_once('[').unwrap_or((path, ""));
            let reason = reason.to_string();
            let index = index.strip_suffix(']').and_then(|index| index.parse().ok());
            let text = match index.filter(|_| field == "redirect_uris") {
                Some(index) => t.address(1_usize.saturating_add(index), &reason),
                None => t.reason(&reason),
            };
            self.push(field, label(field, t), text);
        }
    }

    pub(crate) fn add(&mut self, field: &str, text: &str) {
        self.push(field, "", text.to_owned());
    }

    fn push(&mut self, field: &str, label: &'static str, text: String) {
        self.status = StatusCode::UNPROCESSABLE_ENTITY;
        let field = field.to_owned();
        self.list.push(Issue { field, label, text });
    }

    pub(crate) fn any(&self) -> bool {
        !self.list.is_empty()
    }

    pub(crate) fn all(&self) -> &[Issue] {
        &self.list
    }

    pub(crate) fn about(&self, field: &str) -> bool {
        self.list.iter().any(|issue| issue.field == field)
    }

    /// The sentences about a field.
    pub(crate) fn texts<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a str> {
        let about = self.list.iter().filter(move |issue| issue.field == field);
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
