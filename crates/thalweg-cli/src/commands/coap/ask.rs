//! `thalweg coap get` and `put`.

use clap::Args;
use thalweg_coap::message::{RequestBuf, Response};

use super::protection::ClientProtection;
use super::target::{AskingOptions, TargetUri, failure, representation, representation_json};
use crate::outcome::{Failure, print_line, remark};

/// Options of `coap get`.
#[derive(Args, Debug)]
pub struct GetOptions {
    /// Resource to read, such as coap://127.0.0.1/request.
    #[arg(value_name = "URI", value_parser = TargetUri::parse)]
    pub target: TargetUri,

    /// Ask for this content format: text, link-format, octets, json, cbor or a number (default: the server chooses).
    #[arg(long, value_name = "FORMAT", value_parser = super::target::format)]
    pub accept: Option<u16>,

    #[command(flatten)]
    /// The manner of the request.
    pub asking: AskingOptions,

    #[command(flatten)]
    /// The keys of the request.
    pub protection: ClientProtection,
}

/// Options of `coap put`.
#[derive(Args, Debug)]
pub struct PutOptions {
    /// Resource to write, such as coap://127.0.0.1/note.
    #[arg(value_name = "URI", value_parser = TargetUri::parse)]
    pub target: TargetUri,

    /// The new representation.
    #[arg(value_name = "TEXT")]
    pub payload: String,

    /// Declare the format of TEXT: text, link-format, octets, json, cbor or a number (default: text).
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_default_value = true, value_parser = super::target::format)]
    pub format: u16,

    #[command(flatten)]
    /// The manner of the request.
    pub asking: AskingOptions,

    #[command(flatten)]
    /// The keys of the request.
    pub protection: ClientProtection,
}

/// Prints the representation of a resource.
///
/// # Errors
/// The server cannot be reached, answers with an error, or not in time.
pub fn get(options: &GetOptions) -> Result<(), Failure> {
    let request = RequestBuf::get(&options.target.resource);
    let request = match options.accept {
        Some(format) => request.with_accept(format),
        None => request,
    };
    let response = ask(&options.target, request, &options.asking, &options.protection)?;
    if options.asking.json {
        return print_line(format_args!("{:#}", representation_json(&response)?));
    }
    print_line(representation(&response)?)
}

/// Writes a resource and prints the server's answer.
///
/// # Errors
/// As [`get`].
pub fn put(options: &PutOptions) -> Result<(), Failure> {
    let request = RequestBuf::put(&options.target.resource, options.payload.clone().into_bytes());
    let request = request.with_content_format(options.format);
    let response = ask(&options.target, request, &options.asking, &options.protection)?;
    if options.asking.json {
        return print_line(format_args!("{:#}", representation_json(&response)?));
    }
    let text = representation(&response)?;
    remark(format_args!("{:?}", response.code));
    if text.is_empty() { Ok(()) } else { print_line(text) }
}

fn ask(
    target: &TargetUri,
    request: RequestBuf,
    asking: &AskingOptions,
    protection: &ClientProtection,
) -> Result<Response, Failure> {
    let server = target.address()?;
    let mut client = protection.client(target, server, asking.timeout)?;
    client.exchange(request, asking.delivery(), asking.timeout).map_err(|error| failure(&error))
}
