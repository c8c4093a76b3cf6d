//! The frame of every page, and the forms that make calls.

use std::fmt::Display;
use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, LOCATION};
use askama::Template;
use kernel::{StoreError, error_chain};
use web::assets::Asset;
use web::form::Form;
use web::theme;

use crate::SandboxPage;
use crate::calls::{Answered, Call};
use crate::trade::{self, Card};

/// What every page has.
pub(crate) struct Frame<'a> {
    pub(crate) page: &'a SandboxPage,
    /// The label of the page, if it is one of [`PAGES`].
    pub(crate) title: &'static str,
}

/// The pages: address and label.
pub(crate) const PAGES: [(&str, &str); 6] = [
    ("/sandbox", "First steps"),
    ("/sandbox/shop", "Buyer"),
    ("/sandbox/marketplace", "Marketplace"),
    ("/sandbox/receiver", "Receiver"),
    ("/sandbox/client", "Consent"),
    ("/sandbox/timeline", "Timeline"),
];

/// The embedded files that pages load.
pub(crate) static ASSETS: LazyLock<[Asset; 6]> = LazyLock::new(|| {
    [
        ("look.css", theme::STYLE),
        ("sandbox.css", include_str!("../assets/sandbox.css")),
        ("htmx.js", include_str!("../vendor/htmx.min.js")),
        ("sse.js", include_str!("../vendor/sse.min.js")),
        ("sandbox.js", include_str!("../assets/sandbox.js")),
        ("icon.svg", theme::ICON),
    ]
    .map(|(name, content)| Asset::new("/sandbox/assets", name, content))
});

/// The path of the asset with this name.
pub(crate) fn asset(name: &str) -> &'static str {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map_or("", |asset| asset.address.as_str())
}

/// A page, or a part of one.
pub(crate) fn html(page: &impl Template) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .body(rendered(page))
}

pub(crate) fn rendered(template: &impl Template) -> String {
    // Nothing on the page fails to be displayed.
    template.render().unwrap_or_else(|error| error.to_string())
}

pub(crate) fn see_other(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, path)).finish()
}

/// Why something is not shown or done: a status, and a sentence for people.
#[derive(Debug)]
pub(crate) struct PageRefusal(pub(crate) StatusCode, pub(crate) String);

/// A page, or a part of one; else why there is none.
pub(crate) type Shown<T = HttpResponse> = Result<T, PageRefusal>;

impl PageRefusal {
    pub(crate) fn new(status: StatusCode, sentence: impl Display) -> Self {
        Self(status, sentence.to_string())
    }

    /// Of what is not there.
    pub(crate) fn missing(sentence: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    /// Of a request that cannot be right.
    pub(crate) fn bad(sentence: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }
}

impl From<StoreError> for PageRefusal {
    fn from(error: StoreError) -> Self {
        tracing::warn!(
            cause = error_chain(&error),
            "the sandbox's page: the database could not be read"
        );
        let sentence = "The sandbox's database does not answer now: try again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
    }
}

impl From<String> for PageRefusal {
    /// What came of a call that the page needs.
    fn from(sentence: String) -> Self {
        Self(StatusCode::BAD_GATEWAY, sentence)
    }
}

/// The refusal as a page; programs, and the script that shows a command, get its sentence.
pub(crate) fn refused(
    page: &SandboxPage,
    path: &str,
    PageRefusal(status, sentence): PageRefusal,
) -> HttpResponse {
    let of_programs = ["/sandbox/api/", "/sandbox/inbox/", "/sandbox/preview"];
    if of_programs.iter().any(|start| path.starts_with(start)) {
        return HttpResponse::build(status).body(sentence + "\n");
    }
    let mut response = html(&OutcomePage {
        frame: page.frame(status.canonical_reason().unwrap_or_default()),
        curl: String::new(),
        answer: Err(sentence),
        order: None,
    });
    *response.status_mut() = status;
    response
}

/// A form that makes one call, and shows it as a command.
#[derive(Template)]
#[template(path = "button.html")]
struct Button<'a> {
    label: &'a str,
    token: &'a str,
    call: &'a Call,
    curl: String,
    inputs: &'a [Input<'a>],
}

/// A value of a call's body that a person may change: JSON pointer, label, and words to choose from; none for
/// any text.
pub(crate) type Input<'a> = (&'a str, &'a str, &'a [&'a str]);

impl SandboxPage {
    pub(crate) fn frame(&self, title: &'static str) -> Frame<'_> {
        Frame { page: self, title }
    }

    /// The button as HTML.
    pub(crate) fn button(&self, label: &str, call: Call, inputs: &[Input<'_>]) -> String {
        let call = call.keyed(self);
        rendered(&Button {
            label,
            token: &self.form_token,
            curl: call.curl(self),
            call: &call,
            inputs,
        })
    }
}

/// What came of a request.
#[derive(Template)]
#[template(path = "outcome.html")]
struct OutcomePage<'a> {
    frame: Frame<'a>,
    /// The command of the call; empty for none.
    curl: String,
    answer: Result<Answered, String>,
    /// What the answer is about, with what comes next.
    order: Option<Card>,
}

/// The call of a form.
fn call_of(page: &SandboxPage, form: &Form) -> Shown<Call> {
    let basket = form.get("basket").map(|_| trade::place(page, form));
    let call = basket.or_else(|| Call::parse(form));
    let key = form.get("key").map(str::to_owned);
    // That of the command that was shown: pasted as well, it does nothing twice.
    let call = call.map(|call| Call { key, ..call });
    call.ok_or_else(|| PageRefusal::bad("This is not a form of the page: reload it."))
}

/// `POST /sandbox/call`: makes the call of a form.
pub(crate) async fn call(page: &SandboxPage, form: &Form) -> Shown {
    let call = call_of(page, form)?;
    if call.body.get("items") == Some(&serde_json::json!([])) {
        return Err(PageRefusal::bad(
            "The basket is empty: set the pieces of an offer.",
        ));
    }
    let answer = page.make(&call).await;
    let mut order = None;
    if let Ok(answer) = &answer {
        page.inbox.learn(&call.by, answer);
        order = trade::after(page, answer).await;
    }
    Ok(html(&OutcomePage {
        frame: page.frame("The answer"),
        curl: call.curl(page),
        order,
        answer,
    }))
}

/// `POST /sandbox/preview`: the command of a form, as it is filled in now.
pub(crate) fn preview(page: &SandboxPage, form: &Form) -> Shown {
    Ok(HttpResponse::Ok().body(call_of(page, form)?.curl(page)))
}
