//! The target after signing in: a page by its name, or a consent request by its handle. It is never an
//! address, so nobody can be redirected to another site.

use web::form::Form;
use web::path::is_under;

/// The target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Next {
    page: Option<(&'static str, &'static str)>,
    /// The sealed handle of a consent request.
    pub(crate) request: Option<String>,
}

/// The possible pages after signing in: name and path.
const PAGES: [(&str, &str); 8] = [
    ("new-application", "/panel/applications/new"),
    ("applications", "/panel/applications"),
    ("offers", "/panel/offers"),
    ("orders", "/panel/orders"),
    ("tokens", "/panel/tokens"),
    ("connections", "/panel/connections"),
    ("deliveries", "/panel/deliveries"),
    ("account", "/panel/account"),
];

/// The default page.
const FIRST: &str = "/panel/applications";

/// In bytes. A handle is base64url, and the longest consent request gives a far shorter one.
const MAX_HANDLE_LENGTH: usize = 8 * 1024;

impl Next {
    /// The page at this path, or the page with the form that is sent to it.
    pub(crate) fn at(path: &str) -> Self {
        let path = match path {
            "/panel/sign-out-everywhere" => "/panel/account",
            "/panel/once/{form}" => FIRST,
            path => path,
        };
        Self {
            page: PAGES.into_iter().find(|(_, page)| is_under(path, page)),
            request: None,
        }
    }

    /// A consent request.
    pub(crate) fn consent(handle: &str) -> Self {
        Self {
            page: None,
            request: is_handle(handle).then(|| handle.to_owned()),
        }
    }

    /// The target in a query or a form; unknown values are ignored.
    pub(crate) fn of(form: &Form) -> Self {
        let wanted = form.get("next").unwrap_or_default();
        Self {
            page: PAGES.into_iter().find(|(name, _)| *name == wanted),
            request: Self::consent(form.get("request").unwrap_or_default()).request,
        }
    }

    /// The name of the page, for a hidden field; empty for none.
    pub(crate) fn name(&self) -> &'static str {
        self.page.map_or("", |(name, _)| name)
    }

    /// The address of the target.
    pub(crate) fn path(&self) -> String {
        match &self.request {
            Some(handle) => format!("/panel/consent?request={handle}"),
            None => self.page.map_or(FIRST, |(_, path)| path).to_owned(),
        }
    }

    /// The address of the sign-in page that leads to the target.
    pub(crate) fn sign_in(&self) -> String {
        match (&self.request, self.page) {
            (Some(handle), _) => format!("/panel/sign-in?request={handle}"),
            (None, Some((name, _))) => format!("/panel/sign-in?next={name}"),
            (None, None) => "/panel/sign-in".to_owned(),
        }
    }
}

fn is_handle(text: &str) -> bool {
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() <= MAX_HANDLE_LENGTH && text.bytes().all(alphabet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_or_form_leads_back_to_its_page() {
        for (path, name) in [
            ("/panel/applications/new", "new-application"),
            ("/panel/applications/{client_id}/secret", "applications"),
            ("/panel/tokens/{id}/revoke", "tokens"),
            ("/panel/sign-out-everywhere", "account"),
            ("/panel/sign-out", ""),
        ] {
            assert_eq!(Next::at(path).name(), name, "{path}");
        }
    }
}
