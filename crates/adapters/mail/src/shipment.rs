//! The mail to the buyer of a shipped order, and its correction, in Polish.

use askama::Template;
use orders::{Carrier, ShipmentMail};

use crate::address::one_line;
use crate::message::{Content, Text};

struct Facts<'a> {
    subject: String,
    shop: &'a str,
    buyer: Option<&'a str>,
    order_number: String,
    carrier: &'static str,
    tracking_number: &'a str,
    tracking_link: Option<String>,
    is_correction: bool,
}

#[derive(Template)]
#[template(path = "shipment.txt")]
struct PlainText<'a> {
    facts: &'a Facts<'a>,
}

/// askama escapes all values, as it does for `.html`.
#[derive(Template)]
#[template(path = "shipment.html")]
struct HtmlText<'a> {
    facts: &'a Facts<'a>,
}

impl Content for ShipmentMail {
    fn to(&self) -> &str {
        &self.to
    }

    fn recipient(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn text(&self, shop: &str, _: &str, recipient: Option<&str>) -> Result<Text, askama::Error> {
        let order_number = one_line(self.number.as_str());
        let subject = if self.is_correction {
            format!("Poprawione dane przesyłki z zamówienia {order_number}")
        } else {
            format!("Przesyłka z zamówienia {order_number} jest w drodze")
        };
        let facts = Facts {
            subject,
            shop,
            buyer: recipient,
            order_number,
            carrier: carrier_name(self.carrier),
            tracking_number: self.tracking_number.as_str(),
            tracking_link: self.carrier.tracking_url(&self.tracking_number),
            is_correction: self.is_correction,
        };
        Ok(Text {
            plain: PlainText { facts: &facts }.render()?,
            html: HtmlText { facts: &facts }.render()?,
            subject: facts.subject,
        })
    }
}

fn carrier_name(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Other => "inna firma (bez odnośnika do śledzenia)",
        known => known.display_name(),
    }
}
