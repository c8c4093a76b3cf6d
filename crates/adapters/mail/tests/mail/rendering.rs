//! The text of a buyer's mail.

use accounts::LinkKind;
use orders::{Carrier, ShipmentMail};

use crate::support::{account_mail, mail, read, rendered, sender};

#[tokio::test]
async fn an_example() {
    let bytes = rendered(&sender(), &mail()).await.unwrap();
    let source = String::from_utf8(bytes.clone()).unwrap().replace("\r\n", "\n");
    let (head, _) = source.split_once("\n\n").unwrap();
    let message = read(&bytes);
    insta::assert_snapshot!(format!("{head}\n\n{}\n{}", message.text, message.html));
}

#[tokio::test]
async fn the_source_passes_every_server() {
    let account = account_mail(LinkKind::Invitation);
    for source in [
        rendered(&sender(), &mail()).await.unwrap(),
        rendered(&sender(), &account).await.unwrap(),
    ] {
        let source = String::from_utf8(source).unwrap();
        assert!(
            source.is_ascii() && source.lines().all(|line| line.len() <= 78),
            "{source}"
        );
        assert_eq!(source.matches('\n').count(), source.matches("\r\n").count());
        for (part, count) in [
            ("Content-Transfer-Encoding: quoted-printable", 2),
            ("charset=utf-8", 2),
            ("Auto-Submitted: auto-generated\r\n", 1),
            ("@zolw.example.pl>\r\n", 2),
        ] {
            assert_eq!(source.matches(part).count(), count, "{part} in {source}");
        }
    }
}

#[tokio::test]
async fn both_parts_say_the_same() {
    for carrier in Carrier::ALL {
        let mail = ShipmentMail { carrier, ..mail() };
        let message = read(&rendered(&sender(), &mail).await.unwrap());
        let name = if carrier == Carrier::Other {
            "inny"
        } else {
            carrier.display_name()
        };
        for part in [&message.text, &message.html] {
            assert!(part.contains("Dzień dobry, Żaneta Łęcka!"), "{part}");
            assert!(part.contains("PS-2026-000123"), "{part}");
            assert!(part.contains(&format!("Przewoźnik: {name}")), "{part}");
            assert!(part.contains("Numer przesyłki: JJD000-390-1234"), "{part}");
            assert!(part.contains("Księgarnia Żółw"), "{part}");
        }
        if let Some(link) = carrier.tracking_url(&mail.tracking_number) {
            let line = format!("Śledzenie przesyłki: {link}\n");
            assert!(message.text.contains(&line), "{}", message.text);
            let target = format!("href=\"{}\"", link.replace('&', "&#38;"));
            assert!(message.html.contains(&target), "{}", message.html);
        } else {
            assert!(!message.text.contains("http") && !message.text.contains("Śledzenie"));
            assert!(!message.html.contains("href"));
        }
    }
}

#[tokio::test]
async fn a_buyer_without_a_name_is_greeted_all_the_same() {
    for name in [None, Some(" \u{200e}\r\n".to_owned())] {
        let message = read(
            &rendered(&sender(), &ShipmentMail { name, ..mail() })
                .await
                .unwrap(),
        );
        assert!(message.text.starts_with("Dzień dobry!\n"));
        assert!(message.html.contains("<p>Dzień dobry!</p>"));
        assert_eq!(message.to.0, None);
    }
}
