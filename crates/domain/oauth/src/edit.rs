//! An owner's changes to a registered application (contract: Application registration).

use kernel::{Change, Violations};

use crate::registration::{description, redirect_uris, scopes};
use crate::{Application, ApplicationEvent, ScopeSet};

/// A submitted form.
#[derive(Debug, Clone, Default)]
pub struct RawEdit {
    /// Empty means none.
    pub description: Option<String>,
    pub redirect_uris: Vec<String>,
    pub scopes: Vec<String>,
}

/// A validated change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationEdit {
    description: Option<String>,
    redirect_uris: Vec<String>,
    scopes: ScopeSet,
}

impl RawEdit {
    /// Validates every field and reports all violations together, under the field names of the registration.
    pub fn check(self) -> Result<ApplicationEdit, Violations> {
        let mut violations = Violations::new();
        let description = violations.check("description", description(self.description));
        let redirect_uris = redirect_uris(self.redirect_uris, &mut violations);
        let scopes = scopes(&self.scopes, &mut violations);
        match (description, scopes) {
            (Some(description), Some(scopes)) => {
                violations.into_result()?;
                Ok(ApplicationEdit {
                    description,
                    redirect_uris,
                    scopes,
                })
            }
            _ => Err(violations),
        }
    }
}

impl Application {
    /// Applies the owner's edit. Narrowed scopes take effect on existing tokens; removing a redirect URI revokes
    /// nothing that was issued (D89).
    #[must_use]
    pub fn edited(self, edit: ApplicationEdit) -> Change<Self, ApplicationEvent> {
        let ApplicationEdit {
            description,
            redirect_uris,
            scopes,
        } = edit;
        Change::of_existing(
            Self {
                description,
                redirect_uris,
                scopes,
                ..self
            },
            Vec::new(),
        )
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    fn application() -> Application {
        Application {
            description: Some("Keeps stock in step".to_owned()),
            redirect_uris: vec!["https://app.example/cb".to_owned()],
            ..Application::built_in(Uuid::nil().into(), Uuid::nil().into(), DateTime::UNIX_EPOCH).after
        }
    }

    #[test]
    fn an_edit_keeps_the_rules_of_registration() {
        let fine = RawEdit {
            description: Some(String::new()),
            redirect_uris: Vec::new(),
            scopes: vec!["messaging".into()],
        };
        let edit = fine.check().unwrap();
        assert_eq!(edit.description, None);
        let after = application().edited(edit).after;
        assert_eq!(after.description, None);
        assert_eq!(after.redirect_uris, [""; 0]);
        assert_eq!(after.scopes.to_string(), "messaging");
        let expected = Application {
            description: after.description.clone(),
            redirect_uris: after.redirect_uris.clone(),
            scopes: after.scopes,
            ..application()
        };
        assert_eq!(after, expected);
        let wrong = RawEdit {
            description: Some("x".repeat(2001)),
            redirect_uris: vec!["http://a.example".into()],
            scopes: Vec::new(),
        };
        let wrong = wrong.check().unwrap_err();
        let paths: Vec<_> = wrong.iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["description", "redirect_uris[0]", "scopes"]);
    }
}
