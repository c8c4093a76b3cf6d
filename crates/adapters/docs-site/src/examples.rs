//! The sources of the programs to start from, as files to read and to take; their pages are among the guides.

use std::sync::LazyLock;

/// The files, found when the program is built: path in the repository and text.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));

/// A file of an example.
pub(crate) struct Example {
    /// Its path in the repository.
    pub(crate) file: &'static str,
    /// Where it is on the site.
    pub(crate) path: String,
    pub(crate) text: &'static str,
}

/// All of them.
pub(crate) static EXAMPLES: LazyLock<Vec<Example>> = LazyLock::new(|| {
    let examples = FILES.iter().map(|(file, text)| Example {
        file,
        path: format!("/{file}"),
        text,
    });
    examples.collect()
});

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use actix_web::App;
    use actix_web::test::{TestRequest, call_service, init_service, read_body};
    use kernel::MockRandomness;

    use crate::{Docs, DocsSettings, configure};

    const OPENAPI: &str = include_str!("../../../../docs/openapi.json");
    /// What is made when an example is installed, built or run, and the lists of what was installed.
    const MADE: [&str; 4] = ["node_modules", "dist", "__pycache__", "package-lock.json"];

    /// Every file below a folder, by its path within the repository.
    fn files(folder: &str, found: &mut Vec<String>) {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if MADE.contains(&name.as_str()) || name.starts_with('.') || name.starts_with("shipper.") {
                continue;
            }
            let path = format!("{folder}/{name}");
            if entry.file_type().unwrap().is_dir() {
                files(&path, found);
            } else {
                found.push(path);
            }
        }
    }

    #[actix_web::test]
    async fn every_file_is_served_and_linked() {
        let mut randomness = MockRandomness::new();
        randomness.expect_secret().return_const([7; 32]);
        let settings = DocsSettings {
            public_url: "https://api.example.com".to_owned(),
            service_name: "Kettles".to_owned(),
        };
        let docs = Docs::new(&settings, OPENAPI, Arc::new(randomness)).unwrap();
        let pages: String = docs
            .site
            .paths()
            .filter(|(path, page)| {
                path.starts_with("/docs/examples") && page.media_type.starts_with("text/html")
            })
            .map(|(_, page)| String::from_utf8(page.body.to_vec()).unwrap())
            .collect();
        let service = init_service(App::new().configure(configure(docs))).await;
        let mut found = Vec::new();
        files("docs/examples", &mut found);
        assert!(found.len() > 25, "{found:?}");
        for file in found {
            let page = file.strip_suffix("/README.md");
            let path = format!("/{}", page.unwrap_or(&file));
            assert!(
                pages.contains(&format!("<a href=\"{path}\">")),
                "no link to {path}"
            );
            let answer = call_service(&service, TestRequest::get().uri(&path).to_request()).await;
            assert_eq!(answer.status(), 200, "{path}");
            if page.is_some() {
                continue;
            }
            let header = |name: &str| answer.headers().get(name).unwrap().to_str().unwrap().to_owned();
            assert_eq!(header("content-type"), "text/plain; charset=utf-8", "{path}");
            assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
            assert!(
                header("content-security-policy").starts_with("default-src 'none'"),
                "{path}"
            );
            let mark = header("etag");
            let on_disk = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../..")).join(&file);
            assert_eq!(
                read_body(answer).await,
                fs::read_to_string(on_disk).unwrap(),
                "{path}"
            );
            let known = TestRequest::get()
                .uri(&path)
                .insert_header(("if-none-match", mark));
            let again = call_service(&service, known.to_request()).await;
            assert_eq!(again.status(), 304, "{path}");
        }
    }
}
