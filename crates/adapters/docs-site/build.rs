//! Compiles the crate again when a file of the documentation comes or goes: the macro that embeds them sees only those it knew.

fn main() {
    println!("cargo::rerun-if-changed=../../../docs");
}
