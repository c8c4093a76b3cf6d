//! A browser without scripts: it keeps cookies, follows redirects on its own site and submits the forms of a
//! page.

use std::collections::BTreeMap;

use reqwest::Method;
use testkit::{Answer, Client, Request};

use crate::{Form, forms::forms};

const MOST_REDIRECTS: usize = 5;

#[derive(Debug, Clone)]
pub struct Visitor {
    client: Client,
    base: String,
    /// Cookies by name.
    pub cookies: BTreeMap<String, String>,
    headers: Vec<(String, String)>,
}

/// A page that the browser loaded.
#[derive(Debug)]
pub struct Page {
    /// The path with the query.
    pub path: String,
    pub answer: Answer,
    pub html: String,
}

impl Page {
    pub fn forms(&self) -> Vec<Form> {
        forms(&self.html)
    }

    /// The form with this action.
    #[track_caller]
    pub fn form(&self, action: &str) -> Form {
        let mut fitting = self.forms().into_iter().filter(|form| form.action == action);
        fitting
            .next()
            .unwrap_or_else(|| panic!("no form to {action} on {}: {}", self.path, self.html))
    }

    /// Asserts that the page contains this text.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        let (path, html) = (&self.path, &self.html);
        assert!(html.contains(text), "no {text} on {path}: {html}");
    }

    /// Asserts that the page does not contain this text.
    #[track_caller]
    pub fn hides(&self, text: &str) {
        let (path, html) = (&self.path, &self.html);
        assert!(!html.contains(text), "{text} on {path}: {html}");
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.answer.status, status, "{}: {}", self.path, self.html);
        self
    }

    /// The text of the element with this id, which must have no child elements.
    #[track_caller]
    pub fn text_of(&self, id: &str) -> String {
        let mark = format!(" id=\"{id}\"");
        let after = self
            .html
            .split_once(&mark)
            .and_then(|(_, rest)| rest.split_once('>'));
        let text = after
            .and_then(|(_, rest)| rest.split_once('<'))
            .map(|(text, _)| text);
        crate::forms::unescaped(text.unwrap_or_else(|| panic!("nothing with the id {id}: {}", self.html)))
    }
}

impl Visitor {
    /// A fresh browser for a listener's URL.
    pub fn new(client: &Client, base_url: &str) -> Self {
        Self {
            client: client.clone(),
            base: base_url.to_owned(),
            cookies: BTreeMap::new(),
            headers: vec![("accept-language".to_owned(), "en".to_owned())],
        }
    }

    /// Sets a header for every request; it replaces one with the same name.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A request with this browser's headers and cookies.
    pub fn request(&self, method: Method, path: &str) -> Request {
        let url = format!("{}{path}", self.base);
        let mut request = self.client.request(method, &url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if self.cookies.is_empty() {
            return request;
        }
        let pairs: Vec<_> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        request.header("cookie", &pairs.join("; "))
    }

    /// Sends a request and stores the cookies of its answer.
    pub async fn send(&mut self, request: Request) -> Answer {
        let answer = request.send().await;
        for cookie in answer.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().expect("a cookie in ASCII");
            let pair = cookie.split(';').next().and_then(|pair| pair.split_once('='));
            let (name, value) = pair.expect("a cookie has a name and a value");
            if cookie.contains("; Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    /// Sends one GET without following a redirect.
    pub async fn get(&mut self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// Submits a form without following a redirect.
    pub async fn post(&mut self, form: &Form) -> Answer {
        self.send(self.posting(form)).await
    }

    /// The request that submits a form.
    pub fn posting(&self, form: &Form) -> Request {
        self.request(Method::POST, &form.action).form(&form.body())
    }

    /// Opens a page and follows redirects on this site.
    pub async fn open(&mut self, path: &str) -> Page {
        let answer = self.get(path).await;
        self.follow(path, answer).await
    }

    /// Like [`Self::open`]; asserts 200.
    pub async fn page(&mut self, path: &str) -> Page {
        self.open(path).await.expect(200)
    }

    /// Like [`Self::submit`]; asserts 200.
    pub async fn sent(&mut self, form: &Form) -> Page {
        self.submit(form).await.expect(200)
    }

    /// [`Self::form`] with a field filled in.
    pub async fn filled(&mut self, path: &str, name: &str, value: &str) -> Form {
        self.form(path).await.with(name, value)
    }

    /// The form on the page `path` that submits to `path`.
    pub async fn form(&mut self, path: &str) -> Form {
        self.page(path).await.form(path)
    }

    /// Submits a form and follows redirects on this site.
    pub async fn submit(&mut self, form: &Form) -> Page {
        if form.method == "get" {
            return self.open(&form.action).await;
        }
        let answer = self.post(form).await;
        self.follow(&form.action, answer).await
    }

    /// Disconnects an application, after the panel's question.
    pub async fn disconnect(&mut self, client_id: &str) -> Page {
        let action = format!("/panel/connections/{client_id}/disconnect");
        let question = self.form(&action).await;
        self.sent(&question).await
    }

    async fn follow(&mut self, path: &str, mut answer: Answer) -> Page {
        let mut path = path.to_owned();
        for _ in 0..MOST_REDIRECTS {
            let Some(next) = self.next(&answer) else {
                let html = String::from_utf8_lossy(&answer.bytes).into_owned();
                return Page { path, answer, html };
            };
            answer = self.get(&next).await;
            path = next;
        }
        panic!("redirects do not end at {path}");
    }

    /// The path of a redirect on this site.
    fn next(&self, answer: &Answer) -> Option<String> {
        let location = answer.header("location")?;
        let local = location.strip_prefix(&self.base).unwrap_or(location);
        local.starts_with('/').then(|| local.to_owned())
    }

    /// Whether a seller is signed in.
    pub async fn is_in(&mut self) -> bool {
        let page = self.open("/panel/account").await.expect(200);
        !page.path.starts_with("/panel/sign-in")
    }

    /// Signs in and follows the redirects.
    pub async fn sign_in(&mut self, email: &str, password: &str) -> Page {
        let page = self.open("/panel/sign-in").await.expect(200);
        self.submit(&sign_in_form(&page, email, password)).await
    }
}

/// The sign-in form of a page, filled in.
#[track_caller]
pub fn sign_in_form(page: &Page, email: &str, password: &str) -> Form {
    page.form("/panel/sign-in")
        .with("email", email)
        .with("password", password)
}
