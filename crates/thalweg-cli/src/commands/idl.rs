//! `thalweg idl`: IDL and ROS definitions as Rust, or as one text of IDL.

use std::path::{Path, PathBuf};

use clap::Args;
use thalweg::cdr::Extensibility;
use thalweg_types::ros::RosPackages;
use thalweg_types::{SourceDocs, Type, idl, rust};

use crate::outcome::{Failure, print_line};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg idl types.idl", "thalweg idl msg/Pose.msg --package demo --as-idl"))]
/// Prints Rust types that derive Topic for the types in files of IDL and ROS: one text, documented with their comments (/// and /** */ of
/// IDL, # of ROS), in an order that only the definitions decide.
pub struct IdlOptions {
    /// Files that end in .idl, .msg, .srv or .action.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,

    /// Print one text of IDL with all that the types need (default: Rust).
    #[arg(long)]
    pub as_idl: bool,

    /// Look for included files in FOLDER, too, once for each (default: none).
    #[arg(long, value_name = "FOLDER")]
    pub include: Vec<PathBuf>,

    /// Know this macro from the start, once for each: 1, or TEXT (default: none).
    #[arg(short = 'D', long, value_name = "NAME[=TEXT]")]
    pub define: Vec<String>,

    /// Take types that are not annotated as final, as Cyclone DDS's compiler does (default: appendable, as the standard has it).
    #[arg(long)]
    pub default_final: bool,

    /// Name of the ROS package of .msg, .srv and .action files (default: that of the folder around their folder).
    #[arg(long, value_name = "NAME")]
    pub package: Option<String>,

    /// Take types of other ROS packages from this folder, such as /opt/ros/jazzy/share, once for each (default: the share folders
    /// of AMENT_PREFIX_PATH).
    #[arg(long, value_name = "FOLDER")]
    pub share: Vec<PathBuf>,
}

/// Prints the types.
///
/// # Errors
/// A file is not understood, a type has no counterpart in Rust, or output cannot be written.
pub fn run(options: &IdlOptions) -> Result<(), Failure> {
    let mut packages = match &options.share[..] {
        [] => RosPackages::of_prefixes(&std::env::var("AMENT_PREFIX_PATH").unwrap_or_default()),
        shares => RosPackages::new(shares.to_vec()),
    };
    let extensibility = if options.default_final { Extensibility::Final } else { Extensibility::Appendable };
    let reading = idl::Reading { extensibility, folders: options.include.clone(), defines: options.define.clone() };
    let (mut types, mut docs) = (Vec::<Type>::new(), SourceDocs::default());
    for file in &options.files {
        let refused = |error: idl::IdlError| Failure::Usage(error.to_string());
        if file.extension().is_some_and(|extension| extension == "idl") {
            let read = idl::parse_file(file, &reading).map_err(refused)?;
            types.extend(read.iter().cloned());
            docs.extend(read.docs());
        } else {
            types.extend(packages.read_file(&package_of(file, options), file).map_err(refused)?);
        }
    }
    docs.extend(packages.docs());
    let text = match options.as_idl {
        true => idl::to_idl(&types),
        false => rust::to_documented_rust(&types, &docs).map_err(Failure::Failed)?,
    };
    print_line(text.trim_end())
}

/// `demo` of `demo/msg/Pose.msg`.
fn package_of(file: &Path, options: &IdlOptions) -> String {
    let folder = file.parent().and_then(Path::parent).and_then(Path::file_name);
    let of_folder = folder.map(|name| name.to_string_lossy().into_owned());
    options.package.clone().or(of_folder).unwrap_or_else(|| "package".to_owned())
}
