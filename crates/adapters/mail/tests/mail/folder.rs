//! The sandbox's outbox.

use std::{fs, path::Path};

use adapter_mail::FolderMailer;
use kernel::Mailer as _;
use orders::ShipmentMail;

use crate::support::{clock, is_permanent, mail, read, send_at_once, sender};

fn mailer(folder: &Path) -> FolderMailer {
    FolderMailer::new(&sender(), folder, clock()).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn a_mail_is_a_file_named_after_its_id_and_sending_it_again_replaces_the_file() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("sandbox/mail");
    let mailer = mailer(&folder);
    mailer.send(&mail()).await.unwrap();
    let corrected = ShipmentMail {
        name: Some("Żaneta Nowak".to_owned()),
        ..mail()
    };
    mailer.send(&corrected).await.unwrap();
    let name = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e.eml";
    assert_eq!(names(&folder), [name]);
    let message = read(&fs::read(folder.join(name)).unwrap());
    assert_eq!(message.to.0.as_deref(), Some("Żaneta Nowak"));
}

#[tokio::test]
async fn a_reader_never_sees_half_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mailer = mailer(folder.path());
    mailer.send(&mail()).await.unwrap();
    let path = folder.path().join(format!("{}.eml", mail().id));
    let whole = fs::read(&path).unwrap();
    let writing = tokio::spawn(async move {
        for _ in 0..50 {
            mailer.send(&mail()).await.unwrap();
        }
    });
    while !writing.is_finished() {
        assert!(fs::read(&path).unwrap() == whole);
        tokio::task::yield_now().await;
    }
    writing.await.unwrap();
    send_at_once(&self::mailer(folder.path()), [1, 2, 1, 2]).await;
    assert_eq!(names(folder.path()).len(), 3, "one file for each mail");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    // A file in place of the folder stops even root.
    let blocked = folder.path().join("mail");
    fs::write(&blocked, "").unwrap();
    assert!(!is_permanent(&mailer(&blocked).send(&mail()).await));

    // A folder in place of the file fails too, and leaves no temporary file behind.
    let open = folder.path().join("open");
    fs::create_dir_all(open.join(format!("{}.eml", mail().id))).unwrap();
    assert!(!is_permanent(&mailer(&open).send(&mail()).await));
    assert_eq!(names(&open).len(), 1);

    fs::remove_file(&blocked).unwrap();
    mailer(&blocked).send(&mail()).await.unwrap();
}
