//! The mail to the buyer of a shipped order, and its correction, in Polish.

use askama::Template;
use orders::{Carrier, ShipmentMail};

use crate::address::one_line;
use crate::message::{Content, Text};

struct Facts<'a> {
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
    subject: &'a str,
}

impl Content for ShipmentMail {
    fn to(&self) -> &str {
        &self.to
    }

    fn recipient(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn text(&self, shop: &str, _: &str, recipient: Option<&str>) -> Result<Text, askama::Error> {
        let facts = Facts {
            shop,
            buyer: recipient,
            order_number: one_line(self.number.as_str()),
            carrier: carrier_name(self.carrier),
            tracking_number: self.tracking_number.as_str(),
            tracking_link: self.carrier.tracking_url(&self.tracking_number),
            is_correction: self.is_correction,
        };
        let subject = if facts.is_correction {
            format!("Poprawione dane przesyłki z zamówienia {}", facts.order_number)
        } else {
            format!("Przesyłka z zamówienia {} jest w drodze", facts.order_number)
        };
        Ok(Text {
            plain: PlainText { facts: &facts }.render()?,
            html: HtmlText {
                facts: &facts,
                subject: &subject,
            }
            .render()?,
            subject,
        })
    }
}

fn carrier_name(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Other => "inna firma (bez odnośnika do śledzenia)",
        known => known.display_name(),
    }
}
