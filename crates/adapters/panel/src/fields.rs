//! The fields of a submitted form.

use kernel::Fingerprint;
use uuid::Uuid;
use web::form::Form;

/// The one field that may be repeated: a checkbox per scope.
const REPEATABLE: &str = "scopes";

/// A form in which only scopes are repeated.
#[derive(Debug, Default)]
pub(crate) struct Fields(Form);

impl Fields {
    /// Wraps a form; `None` if a field is repeated that may not be.
    pub(crate) fn new(form: Form) -> Option<Self> {
        let is_unique = form.repeated(Some(REPEATABLE)).is_none();
        is_unique.then_some(Self(form))
    }

    /// The value of a field; empty if it is absent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_default()
    }

    /// The value of a field as an owned string.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).to_owned()
    }

    /// The value of a text area, whose line ends browsers send as CRLF.
    pub(crate) fn long_text(&self, name: &str) -> String {
        self.get(name).replace("\r\n", "\n")
    }

    /// The names of the ticked scopes.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let ticked = self.0.pairs().filter(|(name, _)| *name == REPEATABLE);
        ticked.map(|(_, value)| value.to_owned()).collect()
    }

    /// The non-blank lines of a field.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let lines = self.get(name).lines().map(str::trim);
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// A digest of the whole form, including its one-time number, and of the path that it was sent to.
    pub(crate) fn mark(&self, path: &str) -> Uuid {
        let sent = self.0.pairs().flat_map(|(name, value)| [name, value]);
        let parts: Vec<_> = [path].into_iter().chain(sent).map(str::as_bytes).collect();
        let digest = Fingerprint::of(&parts);
        Uuid::from_bytes(digest.bytes().first_chunk().copied().unwrap_or_default())
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
    fn a_mark_distinguishes_forms() {
        let mark = |path: &str, body: &str| fields(body).unwrap().mark(path);
        let one = mark("/a", "form=1&name=x&scopes=a&scopes=b");
        assert_eq!(one, mark("/a", "form=1&name=%78&scopes=a&scopes=b"));
        for (path, body) in [
            ("/b", "form=1&name=x&scopes=a&scopes=b"),
            ("/a", "form=2&name=x&scopes=a&scopes=b"),
            ("/a", "form=1&name=y&scopes=a&scopes=b"),
            ("/a", "form=1&name=x&scopes=a"),
            ("/a", "form=1&name=x&scopes=a&scope=sb"),
            ("/a", "form=1&name=xscopes&a=&scopes=b"),
        ] {
            assert_ne!(one, mark(path, body), "{path} {body}");
        }
    }

    #[test]
    fn blank_lines_are_skipped() {
        let fine = fields("redirect_uris=%20https%3A%2F%2Fa%0D%0A%0D%0Ahttps%3A%2F%2Fb%0D%0A").unwrap();
        assert_eq!(fine.lines("redirect_uris"), ["https://a", "https://b"]);
    }
}
