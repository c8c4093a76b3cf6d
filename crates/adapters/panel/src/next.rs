//! Where a seller goes after signing in: a page by its name, or a request for consent by its handle. Never an address, so that
//! nobody can be sent elsewhere.

use web::form::Form;

/// Where to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Next {
    page: Option<Destination>,
    /// The sealed handle of a request for consent.
    pub(crate) request: Option<String>,
}

/// A page that signing in can lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    Applications,
    NewApplication,
    Tokens,
    Connections,
    Deliveries,
    Account,
}

impl Destination {
    const ALL: [Self; 6] = [
        Self::Applications,
        Self::NewApplication,
        Self::Tokens,
        Self::Connections,
        Self::Deliveries,
        Self::Account,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Applications => "applications",
            Self::NewApplication => "new-application",
            Self::Tokens => "tokens",
            Self::Connections => "connections",
            Self::Deliveries => "deliveries",
            Self::Account => "account",
        }
    }

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Applications => "/panel/applications",
            Self::NewApplication => "/panel/applications/new",
            Self::Tokens => "/panel/tokens",
            Self::Connections => "/panel/connections",
            Self::Deliveries => "/panel/deliveries",
            Self::Account => "/panel/account",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|destination| destination.name() == name)
    }
}

/// A handle is base64url, and this is far above what the longest request gives.
const LONGEST_HANDLE: usize = 8 * 1024;

impl Next {
    /// A page.
    pub(crate) const fn page(page: Destination) -> Self {
        Self {
            page: Some(page),
            request: None,
        }
    }

    /// A request for consent.
    pub(crate) fn consent(handle: &str) -> Self {
        Self {
            page: None,
            request: is_handle(handle).then(|| handle.to_owned()),
        }
    }

    /// What a query or a form names; what is none of ours is left out.
    pub(crate) fn of(form: &Form) -> Self {
        let handle = form.get("request").filter(|handle| is_handle(handle));
        Self {
            page: form.get("next").and_then(Destination::parse),
            request: handle.map(str::to_owned),
        }
    }

    /// The name of the page, for a hidden field; empty for none.
    pub(crate) fn name(&self) -> &'static str {
        self.page.map_or("", Destination::name)
    }

    /// The address of the page.
    pub(crate) fn path(&self) -> String {
        match &self.request {
            Some(handle) => format!("/panel/consent?request={handle}"),
            None => self.page.unwrap_or(Destination::Applications).path().to_owned(),
        }
    }

    /// The address of the page to sign in on that leads there.
    pub(crate) fn sign_in(&self) -> String {
        match (&self.request, self.page) {
            (Some(handle), _) => format!("/panel/sign-in?request={handle}"),
            (None, Some(page)) => format!("/panel/sign-in?next={}", page.name()),
            (None, None) => "/panel/sign-in".to_owned(),
        }
    }
}

fn is_handle(text: &str) -> bool {
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() <= LONGEST_HANDLE && text.bytes().all(alphabet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_pages_and_handles_lead_anywhere() {
        let path = |query: &str| Next::of(&Form::parse(query.as_bytes()).unwrap()).path();
        assert_eq!(path("next=tokens"), "/panel/tokens");
        assert_eq!(path("request=abc-_1"), "/panel/consent?request=abc-_1");
        for other in [
            "",
            "next=https://evil.example",
            "next=//evil.example",
            "request=a/b",
            "request=%0d%0aSet-Cookie",
            "request=",
        ] {
            assert_eq!(path(other), "/panel/applications", "{other}");
        }
    }

    #[test]
    fn names_read_back() {
        for destination in Destination::ALL {
            assert_eq!(Destination::parse(destination.name()), Some(destination));
        }
    }
}
