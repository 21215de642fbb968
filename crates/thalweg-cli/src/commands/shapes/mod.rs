//! `thalweg shapes`: the shapes demonstration as the OMG's interoperability suite drives it, also under any program name with
//! `shape_main` in it, such as the suite's `thalweg-0.1.0_shape_main_linux`.

mod canvas;
mod news;
mod options;
mod participant;
mod publish;
mod qos;
mod subscribe;

use std::ffi::OsString;

use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line};
pub use options::ShapesOptions;

/// A shape, as `shape.idl` of the suite describes it.
#[derive(thalweg::Topic, Clone, Debug, Default, PartialEq)]
#[topic(name = "ShapeType", extensibility = "appendable")]
pub(super) struct Shape {
    #[topic(key, max_len = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

/// The words of the command line, where a program of another name stands for this command.
pub fn words(mut words: Vec<OsString>) -> Vec<OsString> {
    let program = words.first().and_then(|path| std::path::Path::new(path).file_name());
    if program.is_some_and(|name| name.to_string_lossy().contains("shape_main")) {
        words.insert(1, "shapes".into());
    }
    words
}

/// Publishes or subscribes as the options say.
///
/// # Errors
/// An option cannot be used or asks for what is not effective, an endpoint cannot be created, or output cannot be written.
pub fn run(options: &ShapesOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    for remark in options.remarks() {
        print_line(remark)?;
    }
    // The suite reads it in front of everything else.
    if let Some(policy) = qos::not_effective(options) {
        print_line(format_args!("    {policy} = not supported"))?;
        return Err(Failure::Usage(format!("{policy} is not effective")));
    }
    let participant = participant::create(options)?;
    if options.publishes() {
        publish::run(options, &participant, interrupt)?;
    } else {
        subscribe::run(options, &participant, interrupt)?;
    }
    print_line("Done.")
}

/// An endpoint could not be created.
fn creation(error: thalweg::Error) -> Failure {
    Failure::Usage(error.to_string())
}
