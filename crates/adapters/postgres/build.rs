//! Watches the migrations, which are embedded.

fn main() {
    println!("cargo::rerun-if-changed=../../../migrations");
}
