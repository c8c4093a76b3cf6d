//! Recompiles the crate when a documentation file is added or removed: the macro that embeds them tracks only
//! existing files.

fn main() {
    println!("cargo::rerun-if-changed=../../../docs");
}
