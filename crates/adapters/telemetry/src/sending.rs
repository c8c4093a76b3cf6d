//! How batches travel: HTTP by rustls and ring, without redirects, proxies of the environment or repeats.

use std::{io::Read, time::Duration};

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::{blocking::Client, header::HeaderMap, redirect::Policy};

use crate::Header;

/// How long a batch may take, its answer included.
pub(crate) const WITHIN: Duration = Duration::from_secs(5);
/// How much of that the connection may take.
const CONNECT: Duration = Duration::from_secs(2);
/// What is read of an answer, in bytes: it says how many spans were refused, and why.
const LARGEST: u64 = 64 * 1024;

/// The client. It blocks: it is used by the exporting thread alone.
#[derive(Debug)]
pub(crate) struct Sender {
    client: Client,
    headers: HeaderMap,
}

impl Sender {
    pub(crate) fn new(headers: Vec<Header>) -> Result<Self, reqwest::Error> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Somebody else may install it in this very moment: all the better.
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let client = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(WITHIN)
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .retry(reqwest::retry::never())
            .build()?;
        let headers = headers.into_iter().map(|header| (header.name, header.value));
        Ok(Self {
            client,
            headers: headers.collect(),
        })
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut request = reqwest::blocking::Request::try_from(request)?;
        request.headers_mut().extend(self.headers.clone());
        let answer = self.client.execute(request)?;
        let status = answer.status();
        let mut body = Vec::new();
        answer.take(LARGEST).read_to_end(&mut body)?;
        Ok(Response::builder().status(status).body(body.into())?)
    }
}
