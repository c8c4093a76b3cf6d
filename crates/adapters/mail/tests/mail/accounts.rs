//! The text of a mail with a link to an account.

use accounts::{AccountMail, LinkKind};
use adapter_mail::SmtpMailer;
use kernel::Mailer as _;

use crate::{
    stub::{Act, Script, Stub},
    support::{account_mail, clock, error_text, impatient, is_permanent, read, rendered, sender},
};

#[tokio::test]
async fn examples() {
    for (name, kind) in [
        ("an_invitation", LinkKind::Invitation),
        ("a_new_password", LinkKind::PasswordReset),
    ] {
        let message = read(&rendered(&sender(), &account_mail(kind)).await.unwrap());
        let shown = format!("{}\n\n{}\n{}", message.subject, message.text, message.html);
        insta::assert_snapshot!(name, shown);
    }
}

#[tokio::test]
async fn both_parts_and_both_languages_have_the_link_and_its_end() {
    for kind in [LinkKind::Invitation, LinkKind::PasswordReset] {
        let mail = account_mail(kind);
        let message = read(&rendered(&sender(), &mail).await.unwrap());
        assert_eq!(message.to, (Some(mail.name), mail.to));
        for part in [&message.text, &message.html] {
            assert_eq!(part.matches(&mail.url).count(), 2, "{part}");
            assert_eq!(part.matches("2026-03-14 09:05 UTC").count(), 2, "{part}");
        }
    }
}

#[tokio::test]
async fn a_hostile_name_adds_neither_header_nor_markup() {
    let mail = AccountMail {
        name: "Eve\r\nBcc: all@example.com\r\n\r\n<script>alert(1)</script>".to_owned(),
        ..account_mail(LinkKind::Invitation)
    };
    let message = read(&rendered(&sender(), &mail).await.unwrap());
    assert!(!message.headers.iter().any(|name| name == "Bcc"));
    assert!(!message.html.contains("<script>"), "{}", message.html);
    assert!(message.text.starts_with("Dzień dobry, Eve Bcc: all@example.com"));
}

#[tokio::test]
async fn the_link_is_in_no_error() {
    let to_nobody = AccountMail {
        to: "nobody".to_owned(),
        ..account_mail(LinkKind::Invitation)
    };
    let refused = rendered(&sender(), &to_nobody).await.map(|_| ());
    assert!(is_permanent(&refused));
    let stub = Stub::start(Script::default().at("CONTENT", Act::Hush)).await;
    let mailer = SmtpMailer::new(&sender(), &impatient(stub.port()), clock()).unwrap();
    let late = mailer.send(&account_mail(LinkKind::Invitation)).await;
    for error in [refused.unwrap_err(), late.unwrap_err()] {
        assert!(!error_text(&error).contains("ps_ln_"), "{error:?}");
    }
}
