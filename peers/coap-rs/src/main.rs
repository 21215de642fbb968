//! The resources of the CoAP measurements with the crate `coap`; `peers/README.md` says what such a server does.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use coap::Server;
use coap_lite::{CoapOption, CoapRequest, ContentFormat, RequestType, ResponseType};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--version"] => {
            println!("{VERSION}");
            ExitCode::SUCCESS
        }
        ["--bind", address] => match serve(address).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => fail(&reason),
        },
        _ => fail("the only option is --bind ADDRESS:PORT"),
    }
}

fn fail(reason: &str) -> ExitCode {
    eprintln!("error: {reason}");
    ExitCode::from(2)
}

async fn serve(address: &str) -> Result<(), String> {
    let server = Server::new_udp(address).map_err(|error| format!("{address} cannot be used: {error}"))?;
    println!("serving coap://{address}");
    std::thread::spawn(end_with_input);
    server.run(handle).await.map_err(|error| format!("the server ended: {error}"))
}

/// Ends the process with its standard input.
fn end_with_input() {
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    std::process::exit(0);
}

async fn handle(mut request: Box<CoapRequest<SocketAddr>>) -> Box<CoapRequest<SocketAddr>> {
    let answer = answer(&request).await;
    if let Some(response) = &mut request.response {
        match answer {
            Ok(text) => {
                response.set_status(ResponseType::Content);
                response.message.set_content_format(ContentFormat::TextPlain);
                response.message.payload = text.into_bytes();
            }
            Err(status) => response.set_status(status),
        }
    }
    request
}

async fn answer(request: &CoapRequest<SocketAddr>) -> Result<String, ResponseType> {
    if *request.get_method() != RequestType::Get {
        return Err(ResponseType::MethodNotAllowed);
    }
    match request.get_path().as_str() {
        "request" => Ok("hello world".to_owned()),
        "slow" => {
            let ms = number(request, "ms=")?;
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(format!("waited {ms} ms"))
        }
        "busy" => {
            let us = number(request, "us=")?;
            let start = Instant::now();
            while start.elapsed() < Duration::from_micros(us) {
                std::hint::spin_loop();
            }
            Ok(format!("computed for {us} us"))
        }
        _ => Err(ResponseType::NotFound),
    }
}

/// The number in the query, 0 without one.
fn number(request: &CoapRequest<SocketAddr>, prefix: &str) -> Result<u64, ResponseType> {
    let Some(query) = request.message.get_first_option(CoapOption::UriQuery) else { return Ok(0) };
    let text = std::str::from_utf8(query).ok().and_then(|text| text.strip_prefix(prefix));
    text.and_then(|text| text.parse().ok()).ok_or(ResponseType::BadRequest)
}

/// As in `Cargo.toml`: the crate does not tell.
const VERSION: &str = "coap 0.29.0";
