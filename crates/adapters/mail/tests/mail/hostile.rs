//! Buyers choose their names and addresses. Neither may inject anything into headers or commands.

use adapter_mail::{FolderMailer, SenderSettings};
use orders::{OrderNumber, ShipmentMail};

use crate::{
    stub::{Script, Stub},
    support::{clock, is_permanent, mail, read, rendered, send_to, sender},
};

const NAMES: [&str; 9] = [
    "Anna\r\nBcc: eve@example.com",
    "Anna\nBcc: eve@example.com",
    "Anna\rBcc: eve@example.com",
    "Anna\r\n\r\n<html>",
    "Anna\u{2028}Bcc: eve@example.com",
    "Anna\" <eve@example.com>, \"",
    "eve@example.com",
    "=?utf-8?q?Anna=0D=0ABcc:_eve@example.com?=",
    "Łucja\r\n.\r\nMAIL FROM:<eve@example.com>\r\nRCPT TO:<eve@example.com>\r\nDATA",
];

#[tokio::test]
async fn a_name_adds_no_header_no_recipient_and_no_command() {
    for name in NAMES {
        let stub = Stub::start(Script::default()).await;
        let named = ShipmentMail {
            name: Some(name.to_owned()),
            ..mail()
        };
        send_to(&stub, &named).await.unwrap();
        assert_eq!(stub.commands().len(), 4, "{name:?}");
        assert_eq!(stub.contents().len(), 1, "{name:?}");
        let message = read(stub.contents()[0].as_bytes());
        assert_eq!(message.headers.len(), 8, "{name:?}: {:?}", message.headers);
        assert_eq!(message.to.1, "zaneta@example.com", "{name:?}");
        assert_eq!(
            message.subject,
            "Przesyłka z zamówienia PS-2026-000123 jest w drodze"
        );
        assert!(
            message.text.starts_with("Dzień dobry, ") && message.text.contains("jest w drodze"),
            "{name:?}"
        );
    }
}

#[tokio::test]
async fn an_address_that_is_not_one_address_is_refused_before_the_server_is_asked() {
    let stub = Stub::start(Script::default()).await;
    for address in ["anna", "anna@example.com>\r\nRCPT TO:<eve@example.com"] {
        let addressed = ShipmentMail {
            to: address.to_owned(),
            ..mail()
        };
        assert!(is_permanent(&send_to(&stub, &addressed).await), "{address:?}");
        let written = rendered(&sender(), &addressed).await;
        assert!(is_permanent(&written.map(drop)), "{address:?}");
    }
    assert_eq!(stub.connections(), 0);
}

#[tokio::test]
async fn a_name_is_text_in_html_too() {
    let named = ShipmentMail {
        name: Some("<script>alert('a')</script> & \"Syn\"".to_owned()),
        ..mail()
    };
    let shop = SenderSettings {
        name: "A&B <b>Sklep</b>".to_owned(),
        ..sender()
    };
    let message = read(&rendered(&shop, &named).await.unwrap());
    assert!(
        !message.html.contains("<script>") && !message.html.contains("<b>"),
        "{}",
        message.html
    );
    assert!(
        message
            .html
            .contains("&#60;script&#62;alert(&#39;a&#39;)&#60;/script&#62; &#38; &#34;Syn&#34;!")
    );
    assert!(message.html.contains("A&#38;B &#60;b&#62;Sklep&#60;/b&#62;"));
    assert!(
        message
            .text
            .starts_with("Dzień dobry, <script>alert('a')</script> & \"Syn\"!")
    );
    assert_eq!(message.to.0.as_deref(), named.name.as_deref());
    assert_eq!(message.from.0.as_deref(), Some("A&B <b>Sklep</b>"));
}

#[tokio::test]
async fn not_even_an_unchecked_order_number_breaks_a_header() {
    let numbered = ShipmentMail {
        number: OrderNumber::from_trusted("PS-1\r\nBcc: eve@example.com".to_owned()),
        ..mail()
    };
    let message = read(&rendered(&sender(), &numbered).await.unwrap());
    assert_eq!(message.headers.len(), 8);
    assert_eq!(
        message.subject,
        "Przesyłka z zamówienia PS-1 Bcc: eve@example.com jest w drodze"
    );
}

#[test]
fn a_sender_is_checked_at_the_start() {
    let refused = |name: &str, address: &str| {
        let settings = SenderSettings {
            name: name.to_owned(),
            address: address.to_owned(),
        };
        FolderMailer::new(&settings, "mail", clock()).is_err()
    };
    assert!(!refused("Sklep", "sklep@example.pl"));
    assert!(!refused("Sklep", "sklep@żółw.pl"));
    assert!(refused("\r\n", "sklep@example.pl"));
    assert!(refused("Sklep", "sklep"));
    assert!(refused("Sklep", "sklep@example.pl\r\nBcc: eve@example.com"));
    assert!(refused("Sklep", "żółw@example.pl"));
}
