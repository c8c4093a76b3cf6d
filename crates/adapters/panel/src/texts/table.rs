//! Every text of the pages, in both languages. A text that lacks a language does not compile.

use super::{Language, Message};

texts! {
    /// The frame of every page.
    frame: Frame {
        other_language: Language => Language::Polish, Language::English;
        other_language_name => "Polski", "English";
        skip => "Skip to the content", "Przejdź do treści";
        navigation => "Main", "Główna";
        applications => "Applications", "Aplikacje";
        offers => "Offers", "Oferty";
        orders => "Orders", "Zamówienia";
        tokens => "Personal tokens", "Tokeny osobiste";
        connections => "Connected applications", "Połączone aplikacje";
        deliveries => "Webhook deliveries", "Dostawy webhooków";
        account => "Account", "Konto";
        sign_out => "Sign out", "Wyloguj się";
        documentation => "Documentation", "Dokumentacja";
        panel => "Seller panel", "Panel sprzedawcy";
        error_prefix => "Error", "Błąd";
        summary => "The form was not accepted", "Formularz nie został przyjęty";
        optional => "optional", "opcjonalnie";
        back => "Back", "Wróć";
        keep => "Keep it", "Zostaw";
        more => "Next page", "Następna strona";
    }
    sign_in: SignIn {
        title => "Sign in", "Logowanie";
        lead =>
            "Manage the applications that work with your account.",
            "Zarządzaj aplikacjami, które pracują na Twoim koncie.";
        lead_consent =>
            "Sign in to decide what an application may do with your account.",
            "Zaloguj się, aby zdecydować, co aplikacja może robić na Twoim koncie.";
        email => "E-mail", "E-mail";
        password => "Password", "Hasło";
        submit => "Sign in", "Zaloguj się";
        forgotten => "No password yet, or forgotten?", "Nie masz jeszcze hasła albo go nie pamiętasz?";
        wrong => "The e-mail or the password is not right.", "E-mail lub hasło są nieprawidłowe.";
    }
    sign_out: SignOut {
        title => "Sign out", "Wylogowanie";
        text => "You will have to sign in again to come back.", "Aby wrócić, trzeba będzie zalogować się ponownie.";
        everywhere_title => "Other devices", "Inne urządzenia";
        everywhere_text =>
            "Ends every session of this account, this one included. Applications and tokens keep working.",
            "Kończy wszystkie sesje tego konta, także tę. Aplikacje i tokeny działają dalej.";
        everywhere_submit => "Sign out everywhere", "Wyloguj wszędzie";
    }
    /// Changing and resetting a password.
    passwords: Passwords {
        signed_in_as => "Signed in as", "Zalogowane konto";
        change_title => "Change the password", "Zmiana hasła";
        current => "Current password", "Obecne hasło";
        new => "New password", "Nowe hasło";
        new_hint =>
            "At least 10 characters. A few random words are easier to remember and harder to guess.",
            "Co najmniej 10 znaków. Kilka przypadkowych słów łatwiej zapamiętać i trudniej odgadnąć.";
        change_submit => "Change password", "Zmień hasło";
        change_note =>
            "Every other session of this account ends.",
            "Wszystkie inne sesje tego konta zostaną zakończone.";
        none_yet =>
            "This account has no password yet. To set one, have a link sent to your e-mail address.",
            "To konto nie ma jeszcze hasła. Aby je ustawić, poproś o link na swój adres e-mail.";
        current_wrong => "This is not the current password.", "To nie jest obecne hasło.";
        unchanged =>
            "This is the current password. Choose another one.",
            "To jest obecne hasło. Wybierz inne.";
        forgotten_title => "Forgotten password", "Zapomniane hasło";
        forgotten_lead =>
            "Give the e-mail address of your account, and we will send you a link for a new password.",
            "Podaj adres e-mail swojego konta, a wyślemy link do ustawienia nowego hasła.";
        forgotten_submit => "Send the link", "Wyślij link";
        sent_title => "Check your mail", "Sprawdź pocztę";
        sent_text =>
            "If there is an account with this address, a link is on its way, or was sent a short while ago. It can be used once; the mail says until when.",
            "Jeśli istnieje konto z tym adresem, link jest już w drodze albo został niedawno wysłany. Można go użyć raz, do terminu podanego w wiadomości.";
        back_to_sign_in => "Back to signing in", "Wróć do logowania";
    }
    /// One-time links.
    links: Links {
        invitation_title => "Welcome", "Witamy";
        invitation_lead => "Set a password for your account.", "Ustaw hasło do swojego konta.";
        reset_title => "Set a new password", "Nowe hasło";
        reset_lead =>
            "The old password stops working, and every session of the account ends.",
            "Stare hasło przestanie działać, a wszystkie sesje konta zostaną zakończone.";
        set_submit => "Set password", "Ustaw hasło";
        sign_in_lead =>
            "This link signs you in once, within a minute of being made.",
            "Ten link pozwala zalogować się raz, w ciągu minuty od utworzenia.";
    }
    /// The screen of consent.
    consent: Consent {
        title => "Access to your account", "Dostęp do konta";
        heading: fn(&str) -> String =>
            |name| format!("{name} asks for access to your account"),
            |name| format!("{name} prosi o\u{a0}dostęp do Twojego konta");
        run_by => "Run by", "Właściciel";
        account => "Your account", "Twoje konto";
        may => "It will be able to", "Aplikacja będzie mogła";
        dangerous => "sensitive", "wrażliwe";
        warning =>
            "Sensitive permissions change your data or show personal data of buyers. Approve only if you trust this application.",
            "Uprawnienia wrażliwe pozwalają zmieniać Twoje dane albo widzieć dane osobowe kupujących. Zezwól tylko wtedy, gdy ufasz tej aplikacji.";
        after: fn(&str) -> String =>
            |origin| format!("Afterwards you return to {origin}."),
            |origin| format!("Potem wrócisz na {origin}.");
        revocable =>
            "You can take the access back at any time under “Connected applications”.",
            "Dostęp możesz w każdej chwili odebrać w sekcji „Połączone aplikacje”.";
        expires =>
            "The request expires ten minutes after the application made it.",
            "Prośba wygasa dziesięć minut po jej wysłaniu przez aplikację.";
        approve => "Approve", "Zezwól";
        deny => "Deny", "Odmów";
        another => "Use another account", "Użyj innego konta";
    }
    applications: Applications {
        lead =>
            "Programs that you have registered to use the API.",
            "Programy zarejestrowane przez Ciebie do pracy z API.";
        empty => "You have not registered any application yet.", "Nie masz jeszcze żadnej aplikacji.";
        register => "Register an application", "Zarejestruj aplikację";
        status => "Status", "Status";
        registered => "Registered", "Rejestracja";
    }
    application: OneApplication {
        pending =>
            "Waiting to be accepted. Until then it works for your own account alone: it can get tokens with client_credentials and ask you for consent, but cannot ask other sellers.",
            "Czeka na akceptację. Do tego czasu działa tylko na Twoim koncie: może pobierać tokeny przez client_credentials i prosić Ciebie o zgodę, ale nie może prosić innych sprzedawców.";
        pending_public =>
            "Waiting to be accepted. Until then it works for your own account alone: it can ask you for consent, but cannot ask other sellers.",
            "Czeka na akceptację. Do tego czasu działa tylko na Twoim koncie: może prosić Ciebie o zgodę, ale nie może prosić innych sprzedawców.";
        active_own_use =>
            "It works for your own account. Registered for own use, it cannot ask other sellers for consent.",
            "Działa na Twoim koncie. Jako aplikacja na własny użytek nie może prosić o zgodę innych sprzedawców.";
        active =>
            "It works, for your own account and for sellers who consent.",
            "Działa: na Twoim koncie i na kontach sprzedawców, którzy wyrażą zgodę.";
        suspended =>
            "No tokens are issued to it and its existing tokens are rejected. Contact the marketplace's support to have it reinstated.",
            "Nie otrzymuje tokenów, a wydane wcześniej są odrzucane. Aby ją przywrócić, skontaktuj się z obsługą serwisu.";
        credentials => "Credentials", "Dane dostępowe";
        client_id => "Client ID", "Client ID";
        secret_title => "Secret", "Sekret";
        secret_text =>
            "We keep only a hash of the secret and cannot show it again. A new secret replaces the present one at once; tokens that were issued keep working.",
            "Przechowujemy tylko skrót sekretu i nie możemy go ponownie pokazać. Nowy sekret od razu zastępuje obecny; wydane tokeny działają dalej.";
        rotate => "Rotate secret", "Wymień sekret";
        rotate_text =>
            "You cannot get the current secret back: the application gets no new tokens until it has the new one.",
            "Obecnego sekretu nie można przywrócić: aplikacja nie pobierze nowych tokenów, dopóki nie dostanie nowego sekretu.";
        public_text =>
            "A public application has no secret: it proves itself by PKCE alone.",
            "Aplikacja publiczna nie ma sekretu: uwierzytelnia się wyłącznie przez PKCE.";
        settings => "Settings", "Ustawienia";
        scopes_hint =>
            "Permissions beyond what the marketplace has granted to the application count once it accepts them.",
            "Uprawnienia, których serwis nie przyznał aplikacji, zaczną działać, gdy je zaakceptuje.";
        narrowing =>
            "A permission that you take away is gone from existing tokens at once. Tokens that are refreshed meanwhile lose it for good, even if you give it back: those sellers have to consent again.",
            "Odebrane uprawnienie od razu znika także z wydanych tokenów. Tokeny odświeżone w tym czasie tracą je na stałe, nawet jeśli je przywrócisz: sprzedawcy, których dotyczą, muszą wyrazić zgodę ponownie.";
        requested => "Asked for, not granted yet", "Czekają na przyznanie";
        changed_since =>
            "This was changed after you opened the page, and nothing was saved. The form shows the present value: change it again if needed.",
            "Ta wartość zmieniła się po otwarciu strony, więc niczego nie zapisano. Formularz pokazuje obecną wartość: w razie potrzeby zmień ją ponownie.";
        save => "Save", "Zapisz";
        delete_title => "Delete the application", "Usunięcie aplikacji";
        delete_text =>
            "All its tokens stop working at every seller, for good. A name that other sellers could see stays taken.",
            "Wszystkie jej tokeny przestaną działać u każdego sprzedawcy, na stałe. Nazwa, którą mogli widzieć inni sprzedawcy, pozostanie zajęta.";
        delete => "Delete", "Usuń";
        confirm_title: fn(&str) -> String =>
            |name| format!("Delete {name}?"),
            |name| format!("Usunąć {name}?");
        confirm_text =>
            "All its tokens stop working at every seller, and its webhook subscriptions are deleted. This cannot be undone, and nobody can use the name again if other sellers could see it.",
            "Wszystkie tokeny aplikacji przestaną działać u każdego sprzedawcy, a jej subskrypcje webhooków zostaną usunięte. Tego nie można cofnąć, a nazwy, którą mogli widzieć inni sprzedawcy, nikt już nie użyje.";
    }
    form: ApplicationForm {
        title => "Register an application", "Rejestracja aplikacji";
        lead =>
            "Name, documentation, purpose and kind cannot be changed later.",
            "Nazwy, dokumentacji, przeznaczenia i rodzaju nie można później zmienić.";
        name => "Name", "Nazwa";
        name_hint =>
            "3 to 40 characters: letters A to Z in either case, digits, “.”, “_”, “-” and single spaces. Sellers see it when asked for consent.",
            "Od 3 do 40 znaków: litery bez znaków diakrytycznych, cyfry, „.”, „_”, „-” i pojedyncze spacje. Sprzedawcy widzą ją na ekranie zgody.";
        name_taken =>
            "Another application has this name, or had it before it was deleted.",
            "Inna aplikacja ma tę nazwę albo miała ją przed usunięciem.";
        too_many =>
            "You have as many applications as allowed: delete one first.",
            "Masz już tyle aplikacji, ile wolno: najpierw usuń którąś z nich.";
        description => "Description", "Opis";
        description_hint => "Other sellers do not see it.", "Inni sprzedawcy go nie widzą.";
        documentation_url => "Documentation link", "Link do dokumentacji";
        documentation_hint =>
            "Begins with https://. Sellers see it when asked for consent.",
            "Zaczyna się od https://. Sprzedawcy widzą go na ekranie zgody.";
        purpose => "Purpose", "Przeznaczenie";
        purpose_hint =>
            "An application for own use works at once; the others have to be accepted before they may ask other sellers.",
            "Aplikacja na własny użytek działa od razu; pozostałe muszą zostać zaakceptowane, zanim poproszą innych sprzedawców.";
        client_type => "Kind", "Rodzaj";
        client_type_hint =>
            "A confidential one runs on a server that can keep a secret. A public one runs where others could read it: on a phone or a desktop.",
            "Poufna działa na serwerze, który potrafi strzec sekretu. Publiczna działa tam, gdzie inni mogliby go odczytać: w telefonie lub na komputerze użytkownika.";
        redirect_uris => "Redirect addresses", "Adresy przekierowania";
        redirect_hint =>
            "One per line, at most 20; only for consent of sellers. Full addresses that begin with https://, without fragment, not localhost and not a private address.",
            "Po jednym w wierszu, najwyżej 20; potrzebne tylko do zgody sprzedawców. Pełne adresy zaczynające się od https://, bez fragmentu, nie localhost i nie adres prywatny.";
        scopes => "Permissions", "Uprawnienia";
        scopes_hint =>
            "At least one. Ask for no more than you need: sellers see the list.",
            "Wybierz co najmniej jedno, ale tylko te, które są potrzebne: sprzedawcy widzą tę listę.";
        reserved =>
            "For announced features, not in use yet",
            "Dla zapowiedzianych funkcji, jeszcze nieużywane";
        accept_terms => "I accept the terms of the API", "Akceptuję warunki korzystania z API";
        terms => "Read the terms of the API", "Przeczytaj warunki korzystania z API";
        submit => "Register", "Zarejestruj";
    }
    /// The calls of an application.
    usage: Usage {
        title => "Calls in the last 24 hours", "Wywołania z ostatnich 24 godzin";
        limit => "Limit in this minute", "Limit w tej minucie";
        limit_text: fn(u64, u32) -> String =>
            |used, limit| format!("{used} of {limit} calls used"),
            |used, limit| format!("Wykorzystano {used} z {limit} wywołań");
        none => "No calls have been counted yet. New calls appear here within half a minute.", "Nie policzono jeszcze żadnych wywołań. Nowe pojawią się tu w ciągu pół minuty.";
        meaning => "Meaning", "Znaczenie";
        calls => "Calls", "Wywołania";
        hour => "Hour", "Godzina";
        fine => "Successful", "Udane";
        errors => "Refused or failed", "Odrzucone lub nieudane";
        by_hour => "Hour by hour", "Godzina po godzinie";
    }
    /// Results that are shown once.
    once: Once {
        registered => "The application is registered", "Aplikacja jest zarejestrowana";
        rotated => "The secret was replaced", "Sekret został wymieniony";
        token => "Your personal token", "Twój token osobisty";
        warning =>
            "Copy it now: it is shown this once only, and we keep nothing that could show it again.",
            "Skopiuj go teraz: pokazujemy go tylko ten jeden raz i nie przechowujemy niczego, co pozwoliłoby go odtworzyć.";
        client_secret => "Client secret", "Sekret (client secret)";
        token_label => "Token", "Token";
        to_application => "To the application", "Do aplikacji";
        to_tokens => "To the tokens", "Do tokenów";
    }
    tokens: Tokens {
        lead =>
            "For scripts of your own. A token works for your account alone, without an application.",
            "Do własnych skryptów. Token działa tylko na Twoim koncie i nie wymaga aplikacji.";
        empty => "You have no personal tokens.", "Nie masz tokenów osobistych.";
        name_hint => "To recognise the token by.", "Po niej rozpoznasz token.";
        scopes_hint =>
            "At least one. Give the script no more than it needs.",
            "Co najmniej jedno. Nie dawaj skryptowi więcej, niż potrzebuje.";
        made => "Made", "Utworzony";
        expires => "Expires", "Wygasa";
        never => "never", "nigdy";
        revoke => "Revoke", "Unieważnij";
        revoke_text =>
            "Programs that use it lose access to your account at once. Webhook subscriptions made with it stay until you delete them under “Webhook deliveries”. This cannot be undone.",
            "Programy, które z niego korzystają, od razu stracą dostęp do Twojego konta. Utworzone nim subskrypcje webhooków pozostaną, dopóki nie usuniesz ich na stronie „Dostawy webhooków”. Tego nie można cofnąć.";
        issue_title => "Make a token", "Nowy token";
        expires_at => "Valid through", "Ważny do";
        expires_hint =>
            "The token ends after this day (UTC). Empty: it does not expire.",
            "Token wygasa z końcem tego dnia (UTC). Puste pole: nie wygasa.";
        not_a_day => "Must be a day, such as 2027-01-31.", "Podaj dzień, na przykład 2027-01-31.";
        issue => "Make token", "Utwórz token";
        too_many =>
            "You already have 20 live personal tokens: revoke one first.",
            "Masz już 20 działających tokenów osobistych: najpierw unieważnij któryś z nich.";
        suspended =>
            "Your personal tokens are suspended: ask the marketplace's support.",
            "Twoje tokeny osobiste są zawieszone: skontaktuj się z obsługą serwisu.";
    }
    connections: Connections {
        lead =>
            "Applications that you have let into your account.",
            "Aplikacje, którym zezwolono na dostęp do Twojego konta.";
        empty =>
            "No application is connected with your account.",
            "Żadna aplikacja nie jest połączona z Twoim kontem.";
        may => "It may", "Może";
        no_access =>
            "Has no access any more. It may still receive notifications.",
            "Nie ma już dostępu. Może nadal otrzymywać powiadomienia.";
        since => "Connected", "Połączono";
        used => "Last used", "Ostatnie użycie";
        never => "not yet", "jeszcze nie";
        disconnect => "Disconnect", "Odłącz";
        confirm_title: fn(&str) -> String =>
            |name| format!("Disconnect {name}?"),
            |name| format!("Odłączyć {name}?");
        confirm_text =>
            "The application's access ends at once. No further events are sent to it, but for the notice that the connection has ended, if it has subscribed to that (connection.ended). It has to ask for your consent to come back. An application of your own keeps what its secret permits: delete it to stop that.",
            "Aplikacja od razu straci dostęp. Nie otrzyma dalszych zdarzeń poza powiadomieniem o zakończeniu połączenia, jeśli je subskrybuje (connection.ended). Aby wrócić, będzie musiała poprosić o zgodę. Twoja własna aplikacja zachowa to, na co pozwala jej sekret: aby to zakończyć, usuń ją.";
    }
    /// Offers and orders.
    trade: Trade {
        offers_lead =>
            "Your offers, newest first. Applications that you have connected see and change them.",
            "Twoje oferty, od najnowszych. Połączone aplikacje widzą je i zmieniają.";
        no_offers => "There are no further offers of yours.", "Nie ma dalszych Twoich ofert.";
        orders_lead =>
            "Your orders, newest first, without buyers' data; test orders are left out.",
            "Twoje zamówienia, od najnowszych, bez danych kupujących; zamówienia testowe są pominięte.";
        no_orders => "There are no further orders.", "Nie ma dalszych zamówień.";
        more_items: fn(usize) -> String =>
            |more| format!("and {more} more"),
            |more| format!("i jeszcze {more}");
        external_id => "Your id (external_id)", "Twój identyfikator (external_id)";
        price => "Price", "Cena";
        stock => "In stock", "Na stanie";
        changed => "Changed", "Zmieniono";
        placed => "Placed", "Złożono";
        parcel => "Parcel", "Przesyłka";
        corrections_left => "Corrections left", "Pozostałe poprawki";
    }
    deliveries: Deliveries {
        lead =>
            "The events of your orders and offers that applications receive, and whether each has arrived.",
            "Wysyłane do aplikacji zdarzenia dotyczące Twoich zamówień i ofert oraz informacja, czy dotarły.";
        subscriptions => "Subscriptions", "Subskrypcje";
        no_subscriptions =>
            "No application has subscribed to events of your account.",
            "Żadna aplikacja nie subskrybuje zdarzeń z Twojego konta.";
        active => "Active", "Aktywna";
        inactive => "Stopped", "Zatrzymana";
        suspended => "Application suspended", "Aplikacja zawieszona";
        inactive_text =>
            "The connection has ended, or the account of the application's owner is closed. At most the notice of that (connection.ended) is still sent here.",
            "Połączenie zostało zakończone albo konto właściciela aplikacji jest zamknięte. Wyślemy tu jeszcze najwyżej powiadomienie o tym (connection.ended).";
        confirm_title: fn(&str, &str) -> String =>
            |name, address| format!("Delete the subscription ({name}) to {address}?"),
            |name, address| format!("Usunąć subskrypcję ({name}) na adres {address}?");
        confirm_text =>
            "Nothing more is sent for this subscription, and its deliveries are no longer shown. Whoever has access to your account's webhooks can subscribe again. This cannot be undone.",
            "Dla tej subskrypcji nic już nie wyślemy, a historia jej dostaw zniknie. Kto ma dostęp do webhooków Twojego konta, może utworzyć subskrypcję ponownie. Tego nie można cofnąć.";
        deleted => "The subscription is deleted.", "Subskrypcja została usunięta.";
        events => "Events", "Zdarzenia";
        since => "Subscribed", "Utworzona";
        new_secret => "Signed with a new secret from", "Nowy sekret podpisu od";
        test => "Send a test event", "Wyślij zdarzenie testowe";
        sample => "Test", "Testowe";
        deliveries => "Deliveries", "Dostawy";
        to => "Subscription", "Subskrypcja";
        every => "All", "Wszystkie";
        only_failed =>
            "Only those whose last attempt failed",
            "Tylko te, których ostatnia próba się nie powiodła";
        show => "Show", "Pokaż";
        none => "Nothing has been sent yet.", "Niczego jeszcze nie wysłano.";
        none_such => "There are no such deliveries.", "Nie ma takich dostaw.";
        queued_at => "Queued", "Dodano do kolejki";
        attempts => "Attempts", "Próby";
        attempts_text: fn(u8, u8) -> String =>
            |made, most| format!("{made} of {most}"),
            |made, most| format!("{made} z {most}");
        duration => "Last attempt took", "Czas ostatniej próby";
        next => "Next attempt", "Następna próba";
        arrived => "Delivered", "Dostarczono";
        again => "Deliver again", "Dostarcz ponownie";
        answered: fn(u16) -> String =>
            |status| match status {
            200..=299 => format!("The receiver answered with status {status}."),
            300..=399 => format!("The receiver answered with status {status}, a redirect, and redirects are not followed."),
            _ => format!("The receiver answered with status {status}. Only 2xx means that it has taken the event."),
        },
            |status| match status {
            200..=299 => format!("Odbiorca odpowiedział statusem {status}."),
            300..=399 => format!("Odbiorca odpowiedział statusem {status}, czyli przekierowaniem, a przekierowań nie obsługujemy."),
            _ => format!("Odbiorca odpowiedział statusem {status}. Tylko 2xx oznacza, że przyjął zdarzenie."),
        };
        redelivered =>
            "The event is queued again, with the same id.",
            "Zdarzenie ponownie czeka na wysłanie, z tym samym identyfikatorem.";
        test_event_sent => "A test event is queued.", "Zdarzenie testowe czeka na wysłanie.";
        nothing_sent =>
            "Nothing was sent: the subscription is stopped, or its application is suspended.",
            "Niczego nie wysłano: subskrypcja jest zatrzymana albo jej aplikacja jest zawieszona.";
        under_way =>
            "Nothing was sent: an attempt is under way. Wait for its end, half a minute at most.",
            "Niczego nie wysłano: próba dostarczenia właśnie trwa. Poczekaj, aż się skończy, najwyżej pół minuty.";
        too_many_test_events =>
            "Nothing was sent: a subscription gets at most 10 test events a minute. Wait a minute, then send it.",
            "Niczego nie wysłano: subskrypcja dostaje najwyżej 10 zdarzeń testowych na minutę. Poczekaj minutę i spróbuj ponownie.";
        too_many_redeliveries =>
            "Nothing was sent: at most 30 deliveries a minute are repeated to one subscription. Wait a minute, then repeat it.",
            "Niczego nie wysłano: do jednej subskrypcji powtarzamy najwyżej 30 dostaw na minutę. Poczekaj minutę i spróbuj ponownie.";
    }
    /// Notices about a completed action.
    notices: Notices {
        saved => "Saved.", "Zapisano.";
        deleted => "The application was deleted.", "Aplikacja została usunięta.";
        revoked => "The token was revoked.", "Token został unieważniony.";
        disconnected => "The application was disconnected.", "Aplikacja została odłączona.";
        password_set =>
            "The password is set. You can sign in with it. If an application sent you here, start again from there.",
            "Hasło jest ustawione. Możesz się nim zalogować. Jeśli skierowała Cię tu aplikacja, wróć do niej i zacznij od nowa.";
        password_changed => "The password was changed.", "Hasło zostało zmienione.";
        session_ended =>
            "Your session had ended, so nothing was done. Sign in, and repeat it.",
            "Sesja wygasła, więc nic nie zostało zrobione. Zaloguj się i spróbuj ponownie.";
        signed_out => "You have signed out.", "Wylogowano.";
        signed_out_everywhere =>
            "Every session of the account has ended.",
            "Wszystkie sesje konta zostały zakończone.";
    }
    failures: Failures {
        not_found: Message =>
            ("There is no such page", "The address may be mistyped, or what it led to is gone."),
            ("Nie ma takiej strony", "Adres może zawierać błąd albo to, do czego prowadził, już nie istnieje.");
        stale_form: Message =>
            ("This form is out of date", "Nothing was done: your session may have ended. The Back button of the browser may still have what you typed. Open the page again and repeat what you were doing. If it happens again, allow cookies for this site."),
            ("Ten formularz jest nieaktualny", "Nic nie zostało wykonane: być może sesja wygasła. Przycisk „Wstecz” w przeglądarce może jeszcze przywrócić wpisane dane. Otwórz stronę ponownie i powtórz czynność. Jeśli to się powtórzy, zezwól tej stronie na używanie plików cookie.");
        malformed: Message =>
            ("This request cannot be read", "Nothing was done. Open the page again and repeat what you were doing."),
            ("Nie można odczytać tego żądania", "Nic nie zostało wykonane. Otwórz stronę ponownie i powtórz czynność.");
        too_many: fn(u32) -> (&'static str, String) =>
            |seconds| {
                let wait = match seconds {
                    ..120 => format!("{seconds} s"),
                    _ => format!("{} minutes", seconds.div_ceil(60)),
                };
                ("Too many requests", format!("Wait {wait}, then try again."))
            },
            |seconds| {
                let minutes = seconds.div_ceil(60);
                let wait = match (minutes % 100, minutes % 10) {
                    _ if seconds < 120 => format!("{seconds} s"),
                    (0..12 | 15.., 2..=4) => format!("{minutes} minuty"),
                    _ => format!("{minutes} minut"),
                };
                ("Zbyt wiele żądań", format!("Odczekaj {wait} i spróbuj ponownie."))
            };
        unknown_consent: Message =>
            ("There is no such request", "Go back to the application and start again from there."),
            ("Nie ma takiej prośby", "Wróć do aplikacji i zacznij od nowa.");
        expired_consent: Message =>
            ("This request has expired", "Requests for access can be answered for ten minutes. Go back to the application and start again from there."),
            ("Ta prośba wygasła", "Na prośbę o dostęp można odpowiedzieć przez dziesięć minut. Wróć do aplikacji i zacznij od nowa.");
        decided_consent: Message =>
            ("This request has been answered", "It was approved or denied before. Go back to the application and start again from there."),
            ("Na tę prośbę już odpowiedziano", "Została wcześniej przyjęta lub odrzucona. Wróć do aplikacji i zacznij od nowa.");
        others_consent: Message =>
            ("This request belongs to another session", "It was opened by somebody else, or in a session that has ended. Go back to the application and start again from there."),
            ("Ta prośba należy do innej sesji", "Otworzył ją ktoś inny albo otwarto ją w sesji, która już się zakończyła. Wróć do aplikacji i zacznij od nowa.");
        dead_link: Message =>
            (
                "This link does not work any more",
                "It was used or has expired, or another link, a changed password or “Sign out everywhere” has ended it. Sign in with your password; on the sign-in page you can also ask for a link to set one. If you came from the marketplace's site, go back there and open the panel again.",
            ),
            (
                "Ten link już nie działa",
                "Został użyty, wygasł albo unieważnił go inny link, zmiana hasła lub „Wyloguj wszędzie”. Zaloguj się hasłem; na stronie logowania możesz też poprosić o link do jego ustawienia. Jeśli wchodzisz do panelu ze strony serwisu, wróć tam i otwórz panel ponownie.",
            );
        form_used: Message =>
            (
                "This form has been used already",
                "It was sent before with other contents, and has done what they said. What you have sent now was not done. Open the form anew and fill it in again.",
            ),
            (
                "Ten formularz został już użyty",
                "Wysłano go wcześniej z inną treścią i to ona została wykonana. To, co wysłano teraz, nie zostało wykonane. Otwórz formularz ponownie i wypełnij go jeszcze raz.",
            );
        shown_before: Message =>
            ("This was shown before", "A secret is shown once only. If you have lost it, make a new one."),
            ("To już zostało pokazane", "Sekret pokazujemy tylko raz. Jeśli go nie masz, utwórz nowy.");
        unavailable: Message =>
            ("We cannot answer at the moment", "Try again in a moment."),
            ("Chwilowo nie możemy odpowiedzieć", "Spróbuj ponownie za chwilę.");
        failed: Message =>
            ("Something went wrong on our side", "Try again. If it happens again, tell the marketplace's support the number below."),
            ("Coś poszło nie tak po naszej stronie", "Spróbuj ponownie. Jeśli to się powtórzy, podaj obsłudze serwisu poniższy numer.");
        trace_id => "Number of this request", "Numer tego żądania";
        start => "To the seller panel", "Do panelu sprzedawcy";
        open_anew => "Open the form anew", "Otwórz formularz ponownie";
    }
}
