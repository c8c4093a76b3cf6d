//! A browser without JavaScript: it keeps cookies, reads forms and sends them back.

use std::cell::RefCell;
use std::collections::BTreeMap;

use actix_web::App;
use actix_web::body::to_bytes;
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{CONTENT_TYPE, COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use actix_web::http::{Method, StatusCode};
use actix_web::test::{TestRequest, call_service, init_service};

use super::world::{EMAIL, PASSWORD, Shared};
use crate::{Panel, configure};

/// What came back.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    /// Where a 303 leads.
    pub(crate) fn location(&self) -> &str {
        assert_eq!(self.status, StatusCode::SEE_OTHER, "{}", self.text);
        self.header(LOCATION.as_str())
    }

    /// The value of the first hidden field of this name.
    pub(crate) fn hidden(&self, name: &str) -> String {
        let field = format!("type=\"hidden\" name=\"{name}\" value=\"");
        let (_, rest) = self.text.split_once(&field).unwrap_or_else(|| {
            panic!("there is no field {name} in {}", self.text);
        });
        rest.split('"').next().unwrap().to_owned()
    }
}

/// The browser of one person.
pub(crate) struct Browser {
    panel: Panel,
    pub(crate) cookies: RefCell<BTreeMap<String, String>>,
    pub(crate) extra: RefCell<Vec<(String, String)>>,
}

impl Browser {
    pub(crate) fn of(panel: Panel) -> Self {
        Self {
            panel,
            cookies: RefCell::default(),
            extra: RefCell::default(),
        }
    }

    /// A new browser, in which nobody is signed in.
    pub(crate) fn new(world: &Shared) -> Self {
        Self::of(world.panel())
    }

    /// A browser in which Anna is signed in.
    pub(crate) async fn signed_in(world: &Shared) -> Self {
        let browser = Self::new(world);
        let answer = browser.sign_in(EMAIL, PASSWORD, "").await;
        assert_eq!(answer.location(), "/panel/applications");
        browser
    }

    /// Opens the page to sign in on and sends its form.
    pub(crate) async fn sign_in(&self, email: &str, password: &str, query: &str) -> Answered {
        let page = self.get(&format!("/panel/sign-in{query}")).await;
        let csrf = page.hidden("csrf");
        let mut fields = vec![("email", email), ("password", password), ("csrf", &csrf)];
        let request = query.strip_prefix("?request=").map(|_| page.hidden("request"));
        if let Some(request) = &request {
            fields.push(("request", request));
        }
        let next = query.strip_prefix("?next=").map(|_| page.hidden("next"));
        if let Some(next) = &next {
            fields.push(("next", next));
        }
        self.post("/panel/sign-in", &fields).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.send(Method::GET, path, None, "").await
    }

    /// Sends a form with these fields and the CSRF token that this browser's pages carry.
    pub(crate) async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> Answered {
        let csrf = self.get("/panel/account").await.hidden("csrf");
        let mut all = vec![("csrf", csrf.as_str())];
        all.extend_from_slice(fields);
        self.post(path, &all).await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answered {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        let body = body.finish();
        self.send(
            Method::POST,
            path,
            Some(body),
            "application/x-www-form-urlencoded",
        )
        .await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        content_type: &str,
    ) -> Answered {
        let service = init_service(App::new().configure(configure(self.panel.clone()))).await;
        let mut request = TestRequest::with_uri(path)
            .method(method)
            .peer_addr("127.0.0.1:50000".parse().unwrap())
            .insert_header(("x-forwarded-for", "198.51.100.7"));
        for (name, value) in self.extra.borrow().iter() {
            request = request.insert_header((name.as_str(), value.as_str()));
        }
        let cookies: Vec<_> = self
            .cookies
            .borrow()
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        if !cookies.is_empty() {
            request = request.insert_header((COOKIE, cookies.join("; ")));
        }
        if let Some(body) = body {
            request = request
                .insert_header((CONTENT_TYPE, content_type))
                .set_payload(body);
        }
        let response: ServiceResponse = call_service(&service, request.to_request()).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body())
            .await
            .map_err(|_| "the body broke")
            .unwrap();
        self.keep(&headers);
        Answered {
            status,
            headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    fn keep(&self, headers: &HeaderMap) {
        for cookie in headers.get_all(SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            if cookie.contains("Max-Age=0") {
                self.cookies.borrow_mut().remove(name);
            } else {
                self.cookies
                    .borrow_mut()
                    .insert(name.to_owned(), value.to_owned());
            }
        }
    }
}
