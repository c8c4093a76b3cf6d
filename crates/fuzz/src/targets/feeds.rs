//! The import of offers: where the input is cut makes no difference, every line is accounted for, and what is told stays short.

use std::sync::{Arc, Mutex, PoisonError};

use adapter_backoffice::{ImportReport, Importer};
use kernel::OfferId;
use usecases::{MockTransaction, MockUnitOfWork};
use uuid::Uuid;
use web::Tasks;

use crate::held::is_printable;
use crate::listeners::waiting;
use crate::{Target, targets::texts};

pub(crate) const TARGET: Target = Target {
    name: "feeds",
    run,
    seeds: || {
        let good = r#"{"id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","title":"Kettle","handle":"kettle","status":"published","price":{"amount":12900,"currency":"PLN"},"stock":3,"ean":null,"brand":"B","signature":null,"thumbnail":"https://a.example/t.png","url":"https://a.example/k"}"#;
        let other = good.replace("8d9e", "8d9f");
        texts(&[
            &format!("{good}\n{other}\r\n\n{good}"),
            &format!("{good}\n{{}}\n[1]\nx\n\u{feff}{good}\n"),
            "\n\n\r\n\r",
        ])
    },
    words: &[
        "\n",
        "\r\n",
        "\"stock\":",
        "\"price\":null",
        "\"status\":\"draft\"",
        "https://",
        "{\"id\":",
        "\"url\":",
    ],
    grows: &[
        ("", "{}\n", ""),
        ("", "{\"k#\":1}\n", ""),
        ("{", "\"k#\":1,", "\"z\":0}\n"),
        ("", "\n", ""),
        ("", "x", ""),
    ],
};

fn run(bytes: &[u8]) {
    let (whole, read, saved) = imported(bytes, bytes.len().max(1));
    assert!(whole.created + whole.updated + whole.unchanged + whole.rejected_total <= read);
    assert!(whole.rejected.len() <= 10_000);
    for line in &whole.rejected {
        assert!((1..=read).contains(&line.line) && (1..=20).contains(&line.errors.len()));
        for error in &line.errors {
            assert!(
                error.message().chars().count() <= 301
                    && error.path().is_none_or(|path| path.chars().count() <= 301)
            );
            is_printable(error.message(), 100);
        }
    }
    if bytes.len() < 32 * 1024 {
        for size in [1, 7, 64] {
            let in_pieces = imported(bytes, size);
            assert_eq!(
                (&whole, read, &saved),
                (&in_pieces.0, in_pieces.1, &in_pieces.2),
                "in pieces of {size}"
            );
        }
    }
}

/// What an import of these bytes tells, how many lines it read, and which offers it saved.
fn imported(bytes: &[u8], size: usize) -> (ImportReport, u64, Vec<OfferId>) {
    let saved = Arc::new(Mutex::new(Vec::new()));
    let (report, read) = waiting(|runtime| {
        let mut import = Importer::new(
            Arc::new(units(&saved)),
            Tasks::new(runtime),
            Uuid::from_u128(1).into(),
        );
        async move {
            for piece in bytes.chunks(size) {
                import.feed(piece).await.expect("the store takes it");
            }
            // The last line counts once it has ended.
            let unended = !bytes.is_empty() && !bytes.ends_with(b"\n");
            let read = import.lines_read() + u64::from(unended);
            (import.finish().await.expect("the store takes it"), read)
        }
    });
    let saved = std::mem::take(&mut *saved.lock().unwrap_or_else(PoisonError::into_inner));
    (report, read, saved)
}

fn units(saved: &Arc<Mutex<Vec<OfferId>>>) -> MockUnitOfWork {
    let mut units = MockUnitOfWork::new();
    let saved = Arc::clone(saved);
    units.expect_begin().returning(move || {
        let saved = Arc::clone(&saved);
        let mut transaction = MockTransaction::new();
        transaction
            .expect_now()
            .return_const(chrono::DateTime::UNIX_EPOCH);
        transaction.expect_lock_offers().returning(|_, _| Ok(Vec::new()));
        transaction.expect_save_offers().returning(move |_, changes| {
            let ids = changes.iter().map(|change| change.after.id);
            saved.lock().unwrap_or_else(PoisonError::into_inner).extend(ids);
            Ok(())
        });
        transaction.expect_commit().returning(|| Ok(()));
        Ok(Box::new(transaction))
    });
    units
}
