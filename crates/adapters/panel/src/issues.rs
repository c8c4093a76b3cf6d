//! The violations of a form, for the summary above it and beside each field.

use actix_web::http::StatusCode;
use kernel::BrokenRules;

use crate::texts::{Rule, Texts};

/// Messages with their fields, in field order, and the status of the page.
#[derive(Debug)]
pub(crate) struct Issues {
    list: Vec<Issue>,
    pub(crate) status: StatusCode,
}

/// A violation of one field.
#[derive(Debug)]
pub(crate) struct Issue {
    /// The id of its element; `main`, the whole page, if no field is at fault.
    pub(crate) field: String,
    /// The field's label in the form, for the summary; empty if the text is clear without it.
    pub(crate) label: &'static str,
    pub(crate) text: String,
}

impl Issues {
    pub(crate) const fn none() -> Self {
        let list = Vec::new();
        let status = StatusCode::OK;
        Self { list, status }
    }

    /// A single violation.
    pub(crate) fn one(field: &str, text: &str) -> Self {
        let mut issues = Self::none();
        issues.add(field, text);
        issues
    }

    /// A single conflict with existing data.
    pub(crate) fn conflict(field: &str, text: &str) -> Self {
        Self {
            status: StatusCode::CONFLICT,
            ..Self::one(field, text)
        }
    }

    /// The domain's violations as texts in one language.
    pub(crate) fn of<R: Rule>(violations: &BrokenRules<R>, t: &Texts) -> Self {
        let mut issues = Self::none();
        issues.append(violations, t);
        issues
    }

    /// Adds the domain's violations. Elements of the list of scopes are not distinguished: nobody fills them
    /// in by hand.
    pub(crate) fn append<R: Rule>(&mut self, violations: &BrokenRules<R>, t: &Texts) {
        for (path, rule) in violations.iter() {
            let (field, index) = path.split_once('[').unwrap_or((path, ""));
            let index = index.strip_suffix(']').and_then(|index| index.parse().ok());
            let text = match index.filter(|_| field == "redirect_uris") {
                Some(index) => t.address(1_usize.saturating_add(index), rule),
                None => t.rule(rule),
            };
            self.push(field, label(field, t), text);
        }
    }

    pub(crate) fn add(&mut self, field: &str, text: &str) {
        self.push(field, "", text.to_owned());
    }

    /// Adds a violation under the field's label.
    pub(crate) fn add_labelled(&mut self, field: &str, text: &str, t: &Texts) {
        self.push(field, label(field, t), text.to_owned());
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

    /// The texts about a field.
    pub(crate) fn texts<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a str> {
        let about = self.list.iter().filter(move |issue| issue.field == field);
        about.map(|issue| issue.text.as_str())
    }

    /// The ids of the elements that describe a field: its hint, if it has one, and its violations.
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
    use accounts::Rule;

    use super::*;
    use crate::texts::{ENGLISH, POLISH};

    #[test]
    fn list_elements_are_numbered() {
        let mut violations = BrokenRules::default();
        violations.add("name", Rule::TokenName(100));
        violations.add("redirect_uris[1]", oauth::Rule::NoFragment.into());
        let texts = |t| {
            Issues::of(&violations, t)
                .list
                .into_iter()
                .map(|issue| issue.text)
        };
        assert!(texts(&ENGLISH).eq([
            "Must have 1 to 100 characters, at least one of them visible, and no control characters.",
            "Address 2: must not have a fragment."
        ]));
        assert!(texts(&POLISH).eq([
            "Podaj od 1 do 100 znaków, w tym widoczny, bez sterujących.",
            "Pozycja 2: Adres nie może mieć fragmentu (części po #)."
        ]));
        let issues = Issues::of(&violations, &ENGLISH);
        assert_eq!(issues.described("name", true), "name-hint name-error");
        assert_eq!(issues.described("email", false), "");
    }
}
