//! Converts connection errors to the domain's failures. Reasons never contain the receiver's text.

use std::{error::Error, io};

use rustls::{CertificateError, InvalidMessage};
use webhooks::AttemptFailure;

use crate::read_limit::TooLong;

pub(crate) fn of_stream(error: &io::Error) -> AttemptFailure {
    let inner = error.get_ref();
    if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        AttemptFailure::tls(&of_tls(error))
    } else if let Some(TooLong(reason)) = inner.and_then(|inner| inner.downcast_ref()) {
        AttemptFailure::protocol(reason)
    } else {
        AttemptFailure::Closed
    }
}

pub(crate) fn of_exchange(error: &hyper::Error) -> AttemptFailure {
    if error.is_parse() {
        return AttemptFailure::protocol(&of_parsing(error));
    }
    match error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
    {
        Some(error) => of_stream(error),
        None if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => {
            AttemptFailure::Closed
        }
        None => AttemptFailure::protocol("it is not HTTP/1.1"),
    }
}

fn of_parsing(error: &hyper::Error) -> String {
    if error.is_parse_status() {
        "the answer's status is malformed".to_owned()
    } else if error.is_parse_version_h2() {
        "the receiver speaks only HTTP/2".to_owned()
    } else {
        // The text of hyper's parser, not of the receiver.
        error.to_string()
    }
}

fn of_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => of_certificate(why).to_owned(),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the receiver does not speak TLS on this port".to_owned()
        }
        rustls::Error::AlertReceived(alert) => format!("the receiver ended the handshake: {alert:?}"),
        rustls::Error::PeerIncompatible(_) => "no common TLS version or cipher suite".to_owned(),
        rustls::Error::NoApplicationProtocol => "the receiver does not offer HTTP/1.1".to_owned(),
        _ => "TLS protocol error".to_owned(),
    }
}

fn of_certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is not valid for the host's name"
        }
        CertificateError::UnknownIssuer => {
            "the certificate's issuer is not trusted, or an intermediate certificate is missing"
        }
        CertificateError::Revoked => "the certificate is revoked",
        CertificateError::Other(other) if other.to_string().contains("UnsupportedCertVersion") => {
            "the certificate is of X.509 version 1"
        }
        _ => "the certificate cannot be trusted",
    }
}
