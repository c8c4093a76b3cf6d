//! Buyers choose their names and addresses. Neither may inject anything into headers or commands.

use accounts::{AccountMail, LinkKind};
use adapter_mail::{FolderMailer, SenderSettings};
use orders::{OrderNumber, ShipmentMail};
use testkit::{SmtpScript, SmtpServer};

use crate::support::{account_mail, clock, is_permanent, mail, read, rendered, send_to, sender};

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

fn named(name: &str) -> ShipmentMail {
    let name = Some(name.to_owned());
    ShipmentMail { name, ..mail() }
}

#[tokio::test]
async fn a_name_adds_no_header_no_recipient_and_no_command() {
    for name in NAMES {
        let stub = SmtpServer::start(SmtpScript::default()).await;
        let named = named(name);
        send_to(&stub, &named).await.unwrap();
        assert_eq!((stub.commands().len(), stub.contents().len()), (4, 1), "{name:?}");
        let message = read(stub.contents()[0].as_bytes());
        assert_eq!(message.headers.len(), 8, "{name:?}: {:?}", message.headers);
        assert_eq!(message.to.1, "zaneta@example.com", "{name:?}");
        let subject = "Przesyłka z zamówienia PS-2026-000123 jest w drodze";
        assert_eq!(message.subject, subject, "{name:?}");
        assert!(message.text.starts_with("Dzień dobry, "), "{name:?}");
    }
}

#[tokio::test]
async fn an_address_that_is_not_one_address_is_refused_without_a_connection() {
    let stub = SmtpServer::start(SmtpScript::default()).await;
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
async fn names_are_escaped_in_html() {
    let named = named("<script>alert('a')</script> & \"Syn\"");
    let shop = SenderSettings {
        name: "A&B <b>Sklep</b>".to_owned(),
        ..sender()
    };
    let message = read(&rendered(&shop, &named).await.unwrap());
    for escaped in [
        "&#60;script&#62;alert(&#39;a&#39;)&#60;/script&#62; &#38; &#34;Syn&#34;!",
        "A&#38;B &#60;b&#62;Sklep&#60;/b&#62;",
    ] {
        assert!(message.html.contains(escaped), "{}", message.html);
    }
    for markup in ["<script>", "<b>"] {
        assert!(!message.html.contains(markup), "{}", message.html);
    }
    let greeting = "Dzień dobry, <script>alert('a')</script> & \"Syn\"!";
    assert!(message.text.starts_with(greeting), "{}", message.text);
    assert_eq!((message.to.0, message.from.0), (named.name, Some(shop.name)));
    let account = AccountMail {
        name: NAMES[3].to_owned(),
        ..account_mail(LinkKind::Invitation)
    };
    let message = read(&rendered(&sender(), &account).await.unwrap());
    assert_eq!(message.headers.len(), 8, "{:?}", message.headers);
    assert!(message.html.contains("Anna &#60;html&#62;"), "{}", message.html);
}

#[tokio::test]
async fn an_order_number_that_was_not_validated_breaks_no_header() {
    let numbered = ShipmentMail {
        number: OrderNumber::from_trusted("PS-1\r\nBcc: eve@example.com".to_owned()),
        ..mail()
    };
    let message = read(&rendered(&sender(), &numbered).await.unwrap());
    assert_eq!(message.headers.len(), 8);
    let subject = "Przesyłka z zamówienia PS-1 Bcc: eve@example.com jest w drodze";
    assert_eq!(message.subject, subject);
}

#[test]
fn a_sender_is_checked_at_the_start() {
    for (name, address, is_valid) in [
        ("Sklep", "sklep@example.pl", true),
        ("Sklep", "sklep@żółw.pl", true),
        ("\r\n", "sklep@example.pl", false),
        ("Sklep", "sklep", false),
        ("Sklep", "sklep@example.pl\r\nBcc: eve@example.com", false),
        ("Sklep", "żółw@example.pl", false),
    ] {
        let (name, address) = (name.to_owned(), address.to_owned());
        let settings = SenderSettings {
            name,
            address,
            ..sender()
        };
        let mailer = FolderMailer::new(&settings, "mail", clock());
        assert_eq!(mailer.is_ok(), is_valid);
    }
}
