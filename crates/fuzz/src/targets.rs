//! The targets, one file for each kind of reader.

pub(crate) mod addresses;
pub(crate) mod basic;
pub(crate) mod carriers;
pub(crate) mod credentials;
pub(crate) mod feeds;
pub(crate) mod forms;
pub(crate) mod headers;
pub(crate) mod json;
pub(crate) mod offices;
pub(crate) mod panels;
pub(crate) mod public;
pub(crate) mod queries;
pub(crate) mod receivers;
pub(crate) mod sealed;
pub(crate) mod shapes;
pub(crate) mod times;

/// Seeds of text.
pub(crate) fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
