//! Polish and English.

use super::browser::Browser;
use super::world::Shared;

#[actix_web::test]
async fn the_browsers_language_is_taken_and_another_can_be_chosen() {
    let world = Shared::new();
    let browser = Browser::new(&world);
    browser
        .extra
        .borrow_mut()
        .push(("accept-language".into(), "pl-PL,pl;q=0.9,en;q=0.5".into()));
    let page = browser.get("/panel/sign-in?next=tokens").await.text;
    assert!(
        page.contains("<html lang=\"pl\">") && page.contains("Zaloguj się"),
        "{page}"
    );
    let link = "/panel/sign-in?next=tokens&#38;lang=en";
    assert!(page.contains(link), "{page}");
    let page = browser.get("/panel/sign-in?next=tokens&lang=en").await;
    assert!(page.text.contains("<html lang=\"en\">"), "{}", page.text);
    let page = browser.get("/panel/sign-in").await.text;
    assert!(
        page.contains("<html lang=\"en\">") && page.contains("lang=pl"),
        "{page}"
    );
}

#[actix_web::test]
async fn mistakes_and_failures_are_told_in_polish_too() {
    let world = Shared::new();
    let browser = Browser::signed_in(&world).await;
    browser.get("/panel/account?lang=pl").await;
    let fields = [
        ("form", "00000000-0000-4000-8000-000000000001"),
        ("name", "ż"),
        ("redirect_uris", "http://x"),
    ];
    let page = browser.submit("/panel/applications/new", &fields).await.text;
    for text in [
        "Podaj od 3 do 40 znaków",
        "Pozycja 1: Podaj pełny adres",
        "Zaznacz co najmniej jedno uprawnienie.",
        "Wybierz jedną z możliwości.",
        "Zaakceptuj warunki",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert!(!page.contains("ust "), "{page}");
    let page = browser.get("/panel/nothing").await.text;
    assert!(page.contains("Nie ma takiej strony"), "{page}");
}
