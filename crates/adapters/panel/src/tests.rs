//! The panel over stand-ins of its ports, seen as a browser sees it.

mod accounts;
mod applications;
mod browser;
mod connections;
mod consent;
mod deliveries;
mod failures;
mod languages;
mod links;
mod pages;
mod readers;
mod receivers;
mod signing_in;
mod tokens;
mod transaction;
mod world;
