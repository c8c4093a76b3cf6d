//! DPD Polska (`InfoServices`): SOAP `getEventsForWaybillV1`, with the credentials in the envelope.

use orders::{TrackingNumber, TrackingStatus as Status};
use reqwest::{Request, header::HeaderValue};
use roxmltree::{Document, Node, ParsingOptions};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{Api, LookupFailure, Reading};
use crate::http::{Response, join, post};
use crate::status::{CodeTable, of_history, status_of};
use crate::{Account, parse};

/// Business codes are text: leading zeros are significant.
const CODES: CodeTable = &[
    (Status::Registered, &["030103", "0402*", "0405*", "0406*"]),
    (
        Status::InTransit,
        &["0401*", "05*", "11*", "12*", "15*", "16*", "500500", "230402"],
    ),
    (Status::OutForDelivery, &["170101"]),
    (Status::Delivered, &["1901*", "1902*"]),
    (Status::Exception, &["20*"]),
    (Status::Returning, &["230403", "230408"]),
];

/// Bounds memory: a body may hold 250 000 nodes, `<a/>` each.
const MAX_NODES: u32 = 50_000;

/// Counts every `=` in the body. The XML parser compares each attribute with those before it: a megabyte of them would
/// take minutes.
const MAX_ATTRIBUTES: usize = 2_000;

/// Counts every `xmlns` in the body. The parser copies each declared prefix to every descendant that declares another,
/// and compares it with those already there: two thousand would take seconds.
const MAX_NAMESPACES: usize = 200;

pub(crate) struct Dpd {
    /// The `authDataV1` element.
    credentials: SecretString,
}

impl Dpd {
    pub(crate) fn new(account: &Account) -> Self {
        let credentials = format!(
            "<authDataV1><channel>{}</channel><login>{}</login><password>{}</password></authDataV1>",
            escape(&account.qualifier),
            escape(account.login.expose_secret()),
            escape(account.secret.expose_secret()),
        );
        Self {
            credentials: SecretString::from(credentials),
        }
    }
}

impl Api for Dpd {
    fn request(&self, base_url: &Url, number: &TrackingNumber) -> Request {
        let envelope = format!(
            concat!(
                r#"<?xml version="1.0" encoding="UTF-8"?>"#,
                r#"<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/" "#,
                r#"xmlns:ev="http://events.dpdinfoservices.dpd.com.pl/"><soap:Body><ev:getEventsForWaybillV1>"#,
                "<waybill>{}</waybill><eventsSelectType>ALL</eventsSelectType><language>PL</language>{}",
                "</ev:getEventsForWaybillV1></soap:Body></soap:Envelope>",
            ),
            escape(number.as_str()),
            self.credentials.expose_secret(),
        );
        let path = ["DPDInfoServicesObjEventsService", "DPDInfoServicesObjEvents"];
        let url = join(base_url, &path);
        let mut request = post(url, "text/xml; charset=utf-8", envelope);
        let action = HeaderValue::from_static("\"\"");
        request.headers_mut().insert("soapaction", action);
        request
    }

    /// A SOAP fault has status 200 or 500.
    fn read(&self, _: &TrackingNumber, answer: &Response) -> Result<Reading, LookupFailure> {
        let reading = envelope(&answer.body);
        match (answer.status.as_u16(), &reading) {
            (200, _) | (500, Err(LookupFailure::Refused(_) | LookupFailure::Credentials)) => reading,
            (code, _) => Err(LookupFailure::Status(code)),
        }
    }
}

fn envelope(body: &[u8]) -> Result<Reading, LookupFailure> {
    let text = std::str::from_utf8(body).map_err(|_| LookupFailure::Unreadable("not UTF-8"))?;
    if text.bytes().filter(|byte| *byte == b'=').count() > MAX_ATTRIBUTES {
        return Err(LookupFailure::Unreadable("too many attributes"));
    }
    if text.matches("xmlns").count() > MAX_NAMESPACES {
        return Err(LookupFailure::Unreadable("too many namespaces"));
    }
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    let document =
        Document::parse_with_options(text, options).map_err(|_| LookupFailure::Unreadable("not XML"))?;
    let elements = || document.root().descendants().filter(Node::is_element);
    if let Some(fault) = elements().find(|node| node.tag_name().name() == "Fault") {
        return Err(failure(fault));
    }
    if !elements().any(|node| node.tag_name().name() == "getEventsForWaybillV1Response") {
        return Err(LookupFailure::Unreadable("no response element"));
    }
    let listed = elements().filter(|node| node.tag_name().name() == "eventsList");
    let mut events: Vec<Reading> = listed.filter_map(event).collect();
    // DPD lists the newest first.
    events.reverse();
    of_history(events).ok_or(LookupFailure::NotFound)
}

fn event(element: Node<'_, '_>) -> Option<Reading> {
    let code = child(element, "businessCode")?;
    Some(Reading {
        status: status_of(CODES, code),
        code: code.to_owned(),
        at: child(element, "eventTime").and_then(parse::instant),
    })
}

/// Only the fault's text shows whether DPD rejects the credentials or the request.
fn failure(fault: Node<'_, '_>) -> LookupFailure {
    let words = child(fault, "faultstring").unwrap_or_default();
    if words.to_ascii_lowercase().contains("access denied") {
        LookupFailure::Credentials
    } else {
        LookupFailure::Refused("a SOAP fault".to_owned())
    }
}

fn child<'a>(element: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let child = element.children().find(|child| child.tag_name().name() == name)?;
    child.text().map(str::trim).filter(|text| !text.is_empty())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use orders::Carrier;

    use super::*;

    #[test]
    fn values_in_the_envelope_are_escaped() {
        let account = Account::new(Carrier::Dpd, "a&b".into(), "<]]>\"'&amp;".into()).unwrap();
        let (dpd, base_url) = (Dpd::new(&account), account.base_url);
        let number = TrackingNumber::new("0000012345".to_owned()).unwrap();
        let request = dpd.request(&base_url, &number);
        let body = String::from_utf8(request.body().unwrap().as_bytes().unwrap().to_vec()).unwrap();
        let document = Document::parse(&body).unwrap();
        let text = |name: &str| {
            document
                .descendants()
                .find(|node| node.tag_name().name() == name)
                .and_then(|node| node.text())
        };
        assert_eq!(text("waybill"), Some("0000012345"));
        assert_eq!(text("login"), Some("a&b"));
        assert_eq!(text("password"), Some("<]]>\"'&amp;"));
        assert_eq!(text("channel"), None);
    }

    #[test]
    fn dtds_and_floods_of_nodes_attributes_and_namespaces_are_refused() {
        let bomb = r#"<!DOCTYPE a [<!ENTITY b "c">]><getEventsForWaybillV1Response>&b;</getEventsForWaybillV1Response>"#;
        let (deep, wide) = (
            "<a>".repeat(300_000),
            format!("<r>{}</r>", "<a/>".repeat(200_000)),
        );
        for flood in [bomb, &deep, &wide] {
            assert_eq!(
                envelope(flood.as_bytes()),
                Err(LookupFailure::Unreadable("not XML"))
            );
        }
        let attributes: Vec<_> = (0..40_000).map(|n| format!("a{n}=''")).collect();
        let answer = envelope(format!("<r {}/>", attributes.join(" ")).as_bytes());
        assert_eq!(answer, Err(LookupFailure::Unreadable("too many attributes")));
        let namespaces: Vec<_> = (0..500).map(|n| format!("xmlns:a{n}='b{n}'")).collect();
        let answer = format!(
            "<r {}>{}</r>",
            namespaces.join(" "),
            "<a xmlns:z='z'/>".repeat(500)
        );
        assert_eq!(
            envelope(answer.as_bytes()),
            Err(LookupFailure::Unreadable("too many namespaces"))
        );
    }
}
