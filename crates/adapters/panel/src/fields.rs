//! The fields of a form that was sent.

use oauth::BrowserSecret;
use uuid::Uuid;
use web::form::Form;

/// The one field that may be there more than once: a checkbox for each scope.
const REPEATABLE: &str = "scopes";

/// A form whose fields are there once each, scopes apart.
#[derive(Debug)]
pub(crate) struct Fields(Form);

impl Fields {
    /// Takes a form, unless a field is repeated that may not be.
    pub(crate) fn new(form: Form) -> Option<Self> {
        let mut seen = std::collections::HashSet::new();
        let once = form
            .pairs()
            .all(|(name, _)| name == REPEATABLE || seen.insert(name.to_owned()));
        once.then_some(Self(form))
    }

    /// The value of a field; empty where it is not there.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_default()
    }

    /// A field as its owner.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).to_owned()
    }

    /// The names of the scopes that were ticked.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let ticked = self.0.pairs().filter(|(name, _)| *name == REPEATABLE);
        ticked.map(|(_, value)| value.to_owned()).collect()
    }

    /// The lines of a field that are not blank.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let lines = self.get(name).lines().map(str::trim);
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// The one-time number of the form.
    pub(crate) fn number(&self) -> Option<Uuid> {
        self.get("form").parse().ok()
    }

    /// Whether the form shows that this browser has read it.
    pub(crate) fn are_of(&self, browser: &BrowserSecret) -> bool {
        browser.has_sent(self.get("csrf"))
    }

    pub(crate) const fn form(&self) -> &Form {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(body: &str) -> Option<Fields> {
        Fields::new(Form::parse(body.as_bytes()).unwrap())
    }

    #[test]
    fn only_scopes_may_be_repeated() {
        let fine = fields("scopes=a&name=x&scopes=b").unwrap();
        assert_eq!(fine.scopes(), ["a", "b"]);
        assert!(fields("name=x&name=y").is_none());
    }

    #[test]
    fn blank_lines_are_left_out() {
        let fine = fields("redirect_uris=%20https%3A%2F%2Fa%0D%0A%0D%0Ahttps%3A%2F%2Fb%0D%0A").unwrap();
        assert_eq!(fine.lines("redirect_uris"), ["https://a", "https://b"]);
    }
}
