//! `thalweg coap get`, `put`, `post`, `delete`, `fetch`, `patch`, `ipatch` and `ping`.

use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use thalweg_coap::endpoint::EndpointEvent;
use thalweg_coap::interaction::client::ClientError;
use thalweg_coap::message::{Code, RequestBuf, Response, content_format};

use super::named_option::NamedOption;
use super::protection::ClientProtection;
use super::target::{AskingOptions, TargetUri, failure, representation, representation_json};
use crate::outcome::{Failure, print_line, remark};

/// What all requests have in common.
#[derive(Args, Debug)]
pub struct RequestOptions {
    /// Resource, such as coap://127.0.0.1/note.
    #[arg(value_name = "URI", value_parser = TargetUri::parse)]
    pub target: TargetUri,

    /// Accept this content format only: text, link-format, octets, json, cbor, senml-json, senml-cbor or a number (default: the server chooses).
    #[arg(long, value_name = "FORMAT", value_parser = super::target::format)]
    pub accept: Option<u16>,

    /// Add an option by name or number, such as if-match=0x1a2b, if-none-match, no-response=26 or 2048=text: 0x and digits for octets. May be repeated (default: none).
    #[arg(long = "option", value_name = "NAME[=VALUE]", value_parser = NamedOption::parse)]
    pub options: Vec<NamedOption>,

    #[command(flatten)]
    /// The manner of the request.
    pub asking: AskingOptions,

    #[command(flatten)]
    /// The keys of the request.
    pub protection: ClientProtection,
}

/// Options of requests with a body.
#[derive(Args, Debug)]
pub struct BodyOptions {
    #[command(flatten)]
    /// The request.
    pub request: RequestOptions,

    /// The body (default: none).
    #[arg(value_name = "TEXT", conflicts_with = "body")]
    pub text: Option<String>,

    /// Take the body from FILE, or from standard input for - (default: TEXT).
    #[arg(long, value_name = "FILE")]
    pub body: Option<PathBuf>,

    /// Declare the format of the body: text, link-format, octets, json, cbor, senml-json, senml-cbor or a number (default: text, octets for a body that is no UTF-8).
    #[arg(long, value_name = "FORMAT", value_parser = super::target::format)]
    pub format: Option<u16>,
}

/// Options of `coap ping`.
#[derive(Args, Debug)]
pub struct PingOptions {
    /// Server to ask, such as 127.0.0.1 or coap://127.0.0.1:5683.
    #[arg(value_name = "HOST", value_parser = TargetUri::parse)]
    pub target: TargetUri,

    /// Give up with exit code 3 after SECONDS (default: 10).
    #[arg(long, value_name = "SECONDS", default_value = "10", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub timeout: Duration,

    /// Print one JSON object: server and round_trip_ms (default: a line of text).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// The keys of the connection.
    pub protection: ClientProtection,
}

/// Sends a request without a body and prints the representation of the answer.
///
/// # Errors
/// The server cannot be reached, answers with an error, or not in time.
pub fn without_body(code: Code, options: &RequestOptions) -> Result<(), Failure> {
    ask(RequestBuf::new(code, &options.target.resource), options)
}

/// Sends a request with a body and prints the server's answer.
///
/// # Errors
/// As [`without_body`], and when the body cannot be read.
pub fn with_body(code: Code, options: &BodyOptions) -> Result<(), Failure> {
    let body = body(options)?;
    let format = options.format.unwrap_or(match std::str::from_utf8(&body) {
        Ok(_) => content_format::TEXT,
        Err(_) => content_format::OCTET_STREAM,
    });
    let has_format = options.format.is_some() || !body.is_empty();
    let request = RequestBuf::new(code, &options.request.target.resource).with_payload(body);
    ask(if has_format { request.with_content_format(format) } else { request }, &options.request)
}

/// Asks whether a server is there (RFC 7252 §4.3).
///
/// # Errors
/// It does not answer in time.
pub fn ping(options: &PingOptions) -> Result<(), Failure> {
    let server = options.target.address()?;
    let mut client = options.protection.client(&options.target, server, options.timeout)?;
    let start = Instant::now();
    let asked = client.ping().map_err(|error| failure(&error))?;
    while let Some(rest) = options.timeout.checked_sub(start.elapsed()) {
        match client.next(rest).map_err(|error| failure(&error))? {
            Some(EndpointEvent::Pong { request, .. }) if request == asked => {
                let milliseconds = start.elapsed().as_secs_f64() * 1e3;
                let name = format!("{}://{server}", options.target.transport.scheme());
                let told = json!({ "server": name, "round_trip_ms": milliseconds });
                return match options.json {
                    true => print_line(told),
                    false => print_line(format_args!("{name} is there: {milliseconds:.3} ms")),
                };
            }
            Some(EndpointEvent::Failed { request, error, .. }) if request == asked => {
                return Err(failure(&ClientError::Request(error)));
            }
            _ => {}
        }
    }
    Err(failure(&ClientError::TimedOut(options.timeout)))
}

fn body(options: &BodyOptions) -> Result<Vec<u8>, Failure> {
    let Some(path) = &options.body else { return Ok(options.text.clone().unwrap_or_default().into_bytes()) };
    let mut body = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().read_to_end(&mut body),
        false => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut body)),
    };
    let name = path.display();
    read.map_err(|error| Failure::Usage(format!("the body cannot be read from {name}: {error}")))?;
    Ok(body)
}

fn ask(request: RequestBuf, options: &RequestOptions) -> Result<(), Failure> {
    let request = match options.accept {
        Some(format) => request.with_accept(format),
        None => request,
    };
    let request = options.options.iter().fold(request, |request, option| option.add_to(request));
    let server = options.target.address()?;
    let mut client = options.protection.client(&options.target, server, options.asking.timeout)?;
    let asking = &options.asking;
    let is_read = request.code().is_safe();
    let answered = client.exchange(request, asking.delivery(), asking.timeout);
    print_answer(&answered.map_err(|error| failure(&error))?, is_read, asking.json)
}

/// What was read, or what a change said, and beside it its code and where it put what it created.
fn print_answer(response: &Response, is_read: bool, json: bool) -> Result<(), Failure> {
    if json {
        return print_line(format_args!("{:#}", representation_json(response)?));
    }
    let text = representation(response)?;
    if !is_read {
        let location = response.location().map(|path| format!(" at {path}")).unwrap_or_default();
        remark(format_args!("{:?}{location}", response.code));
    }
    if text.is_empty() && !is_read { Ok(()) } else { print_line(text) }
}
