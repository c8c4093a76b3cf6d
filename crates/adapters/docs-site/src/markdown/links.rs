//! Where the links and pictures of a file lead on the site.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::guides;

/// The pictures of pages, found when the program is built: path in the repository and content.
const PICTURES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pictures.rs"));

/// How links of a text are followed.
pub(crate) struct Links {
    folder: String,
}

impl Links {
    /// Of a file of the repository, such as `docs/guide/orders.md`.
    pub(crate) fn from_file(file: &str) -> Self {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Where a link leads on the site; nothing where the site does not have it.
    pub(super) fn follow(&self, link: &str) -> Option<String> {
        if link.starts_with('#') || link.starts_with("https://") || link.starts_with("http://") {
            return Some(link.to_owned());
        }
        let (file, anchor) = link.find('#').map_or((link, ""), |at| link.split_at(at));
        Some(format!("{}{anchor}", guides::page_of(&self.path_of(file))?))
    }

    /// What a picture's link stands for: the picture itself, within the page.
    pub(super) fn picture(&self, link: &str) -> Option<String> {
        embedded(PICTURES, &self.path_of(link))
    }

    /// The path in the repository that a relative link names.
    pub(super) fn path_of(&self, file: &str) -> String {
        let mut parts: Vec<&str> = self.folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in file.split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop()),
                name => parts.push(name),
            }
        }
        parts.join("/")
    }
}

/// The address of a picture that is within the page itself.
pub(super) fn embedded(pictures: &[(&str, &str)], path: &str) -> Option<String> {
    let (_, svg) = pictures.iter().find(|(file, _)| *file == path)?;
    Some(format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg)))
}
