//! Compiles the C++ side against the Fast DDS below `FASTDDS_ROOT`, which brings its own C and C++ libraries.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-env-changed=FASTDDS_ROOT");
    let sources = ["src/fastdds.cpp", "src/shapes.cpp", "src/topic.cpp", "src/types.cpp"];
    sources.iter().chain(&["src/types.hpp"]).for_each(|file| println!("cargo:rerun-if-changed={file}"));
    let root = std::env::var_os("FASTDDS_ROOT").map(PathBuf::from);
    let root = root.expect("FASTDDS_ROOT names the folder that `cargo xtask peers fastdds` sets up");
    let libraries = libraries(&root).expect("FASTDDS_ROOT holds usr/lib/<system>/libfastdds.so");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").files(sources).include(root.join("usr/include"));
    // Debian keeps the headers that depend on the processor apart.
    build.include(root.join("usr/include").join(libraries.file_name().unwrap_or_default()));
    build.flag_if_supported("-Wno-deprecated-declarations").compile("fastdds_c");
    println!("cargo:rustc-link-search=native={}", libraries.display());
    println!("cargo:rustc-link-lib=dylib=fastdds");
    println!("cargo:rustc-link-lib=dylib=fastcdr");
    // The system's C library may be older than the one that Fast DDS was built for: both come from the folder.
    let loader = root.join("usr/lib64/ld-linux-x86-64.so.2");
    if loader.exists() {
        println!("cargo:rustc-link-arg=-Wl,--allow-shlib-undefined,--disable-new-dtags");
        println!("cargo:rustc-link-arg=-Wl,--dynamic-linker={}", loader.display());
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", libraries.display());
    }
}

/// The folder with the libraries; its name carries the processor.
fn libraries(root: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(root.join("usr/lib")).ok()?;
    folders.flatten().map(|folder| folder.path()).find(|folder| folder.join("libfastdds.so").exists())
}
