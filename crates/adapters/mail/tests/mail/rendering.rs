//! The texts of mails.

use accounts::{AccountMail, LinkKind};
use adapter_mail::SmtpMailer;
use kernel::Mailer as _;
use orders::{Carrier, ShipmentMail};
use testkit::{SmtpAction, SmtpScript, SmtpServer};

use crate::support::{
    account_mail, clock, error_text, is_permanent, mail, read, rendered, sender, short_timeout, transient,
};

#[tokio::test]
async fn examples() {
    for (name, kind) in [
        ("an_invitation", LinkKind::Invitation),
        ("a_new_password", LinkKind::PasswordReset),
    ] {
        let mail = account_mail(kind);
        let message = read(&rendered(&sender(), &mail).await.unwrap());
        assert_eq!(message.to, (Some(mail.name), mail.to));
        let shown = format!("{}\n\n{}\n{}", message.subject, message.text, message.html);
        insta::assert_snapshot!(name, shown);
    }
    let bytes = rendered(&sender(), &mail()).await.unwrap();
    let source = String::from_utf8(bytes.clone()).unwrap().replace("\r\n", "\n");
    let (head, _) = source.split_once("\n\n").unwrap();
    let message = read(&bytes);
    let shown = format!("{head}\n\n{}\n{}", message.text, message.html);
    insta::assert_snapshot!("a_shipment", shown);
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
async fn without_a_known_carrier_there_is_no_link() {
    let carrier = Carrier::Other;
    let message = read(
        &rendered(&sender(), &ShipmentMail { carrier, ..mail() })
            .await
            .unwrap(),
    );
    for part in [&message.text, &message.html] {
        assert!(part.contains("Przewoźnik: inna firma"), "{part}");
        assert!(!part.contains("http") && !part.contains("Śledzenie"), "{part}");
    }
}

#[tokio::test]
async fn a_correction_says_that_an_earlier_mail_is_out_of_date() {
    let is_correction = true;
    let corrected = ShipmentMail {
        is_correction,
        ..mail()
    };
    let message = read(&rendered(&sender(), &corrected).await.unwrap());
    let subject = "Poprawione dane przesyłki z zamówienia PS-2026-000123";
    assert_eq!(message.subject, subject);
    assert!(message.html.contains(&format!("<title>{subject}</title>")));
    let plain = "Dzień dobry, Żaneta Łęcka!\n\nSprzedawca poprawił dane przesyłki z zamówienia PS-2026-000123.\n\
        Podane wcześniej są nieaktualne.\n\nPrzewoźnik: DHL\nNumer przesyłki: JJD000-390-1234\n";
    assert!(message.text.starts_with(plain), "{}", message.text);
    for part in [&message.text, &message.html] {
        assert!(
            part.contains("nieaktualne") && !part.contains("w drodze"),
            "{part}"
        );
    }
}

#[tokio::test]
async fn a_buyer_without_a_name_is_greeted_without_one() {
    for name in [None, Some(" \u{200e}\r\n".to_owned())] {
        let unnamed = ShipmentMail { name, ..mail() };
        let message = read(&rendered(&sender(), &unnamed).await.unwrap());
        assert!(message.text.starts_with("Dzień dobry!\n"));
        assert!(message.html.contains("<p>Dzień dobry!</p>"));
        assert_eq!(message.to.0, None);
    }
}

#[tokio::test]
async fn the_link_is_in_no_error() {
    let to_nobody = AccountMail {
        to: "nobody".to_owned(),
        ..account_mail(LinkKind::Invitation)
    };
    let refused = rendered(&sender(), &to_nobody).await.map(drop);
    assert!(is_permanent(&refused));
    let stub = SmtpServer::start(SmtpScript::default().at("CONTENT", SmtpAction::Silence)).await;
    let mailer = SmtpMailer::new(&sender(), &short_timeout(stub.port()), clock()).unwrap();
    let late = transient(mailer.send(&account_mail(LinkKind::Invitation)).await);
    for error in [error_text(&refused.unwrap_err()), late] {
        assert!(!error.contains("ps_ln_"), "{error}");
    }
}
