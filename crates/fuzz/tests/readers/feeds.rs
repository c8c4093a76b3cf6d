//! The import of offers: every line is counted, wherever the input is split, and the cost is proportional to its length.

use std::sync::{Arc, Mutex};

use adapter_backoffice::{ImportReport, Importer};
use kernel::OfferId;
use tokio::runtime::Runtime;
use usecases::{MockTransaction, MockUnitOfWork};
use uuid::Uuid;
use web::Tasks;

use crate::{always, are_entries, in_proportion};

type Saved = Arc<Mutex<Vec<OfferId>>>;

/// A unit of work that stores nothing and records the saved offers.
fn units(saved: &Saved) -> MockUnitOfWork {
    let (mut units, saved) = (MockUnitOfWork::new(), Arc::clone(saved));
    units.expect_begin().returning(move || {
        let (mut transaction, saved) = (MockTransaction::new(), Arc::clone(&saved));
        transaction
            .expect_now()
            .return_const(chrono::DateTime::UNIX_EPOCH);
        transaction.expect_lock_offers().returning(|_, _| Ok(Vec::new()));
        transaction.expect_save_offers().returning(move |_, changes| {
            let ids = changes.iter().map(|change| change.after.id);
            saved.lock().unwrap().extend(ids);
            Ok(())
        });
        transaction.expect_commit().returning(|| Ok(()));
        Ok(Box::new(transaction))
    });
    units
}

/// Imports `bytes` in pieces of this size: the report, the number of lines read, and the saved offers.
fn imported(runtime: &Runtime, bytes: &[u8], size: usize) -> (ImportReport, u64, Vec<OfferId>) {
    let saved = Saved::default();
    let tasks = Tasks::new(runtime.handle().clone());
    let mut import = Importer::new(Arc::new(units(&saved)), tasks, Uuid::from_u128(1).into());
    let (report, read) = runtime.block_on(async {
        for piece in bytes.chunks(size) {
            import.feed(piece).await.unwrap();
        }
        // The last line counts only if a line break ends it.
        let unended = !bytes.is_empty() && !bytes.ends_with(b"\n");
        let read = import.lines_read() + u64::from(unended);
        (import.finish().await.unwrap(), read)
    });
    let saved = std::mem::take(&mut *saved.lock().unwrap());
    (report, read, saved)
}

#[test]
fn every_line_is_accounted_for_wherever_the_input_is_cut() {
    let runtime = Runtime::new().unwrap();
    let good = r#"{"id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","title":"Kettle","handle":"kettle","status":"published","price":{"amount":12900,"currency":"PLN"},"stock":3,"ean":null,"brand":"B","signature":null,"thumbnail":"https://a.example/t.png","url":"https://a.example/k"}"#;
    let other = good.replace("8d9e", "8d9f");
    let samples = [
        format!("{good}\n{other}\r\n\n{good}"),
        format!("{good}\n{{}}\n[1]\nx\n\u{feff}{good}\n"),
        "\n\n\r\n\r".to_owned(),
    ];
    always(&samples, |bytes| {
        let whole = imported(&runtime, bytes, bytes.len().max(1));
        let (report, read, _) = &whole;
        assert!(report.created + report.updated + report.unchanged + report.rejected_total <= *read);
        for line in &report.rejected {
            assert!((1..=*read).contains(&line.line), "{line:?}");
            are_entries(&line.errors, bytes.len());
        }
        for size in [1, 7, 64] {
            assert_eq!(imported(&runtime, bytes, size), whole, "in pieces of {size}");
        }
    });
    let shapes = [
        ["", "{}\n", ""],
        ["", "{\"k#\":1}\n", ""],
        ["{", "\"k#\":1,", "\"z\":0}\n"],
        ["", "\n", ""],
        ["", "x", ""],
    ];
    in_proportion(&shapes, |bytes| imported(&runtime, bytes, bytes.len()));
}
