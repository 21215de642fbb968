//! The interaction layer and its scheduler: handlers that run on the receiver or in a pool whose number of threads a law
//! decides, and their figures.
//!
//! `cargo run -p thalweg-coap --example interaction`

use std::time::Duration;

use thalweg_coap::endpoint::{Config, Confirmability};
use thalweg_coap::interaction::client::Client;
use thalweg_coap::interaction::handler::{ClassId, Function};
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Server, ServerConfig};
use thalweg_coap::message::{RequestBuf, Response, content_format};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let quick = Function::inline(|_| Response::content("hello world", content_format::TEXT));
    let slow = Function::pooled(ClassId::BLOCKING, |_| {
        std::thread::sleep(Duration::from_millis(20));
        Response::content("at last", content_format::TEXT)
    });
    let routes = Routes::new().add("/quick", quick).add("/slow", slow);
    let server = Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes)?;

    let mut client = Client::open(server.address(), Config { nstart: 64, ..Config::default() })?;
    let patience = Duration::from_secs(10);
    let answer = client.exchange(server.address(), RequestBuf::get("/quick"), Confirmability::Confirmable, patience)?;
    println!("{:?} {}", answer.code, String::from_utf8_lossy(&answer.payload));
    for _ in 0..200 {
        client.send(server.address(), RequestBuf::get("/slow"), Confirmability::Confirmable)?;
    }
    let (mut answers, mut most) = (0, 0);
    while answers < 200 && client.next(patience)?.is_some() {
        answers += 1;
        most = most.max(server.snapshot().scheduler.pools[0].threads);
    }
    println!("{answers} slow answers, by up to {most} threads");
    for group in server.snapshot().scheduler.groups {
        println!("group {}: {} threads, nice +{}", group.group, group.threads, group.nice);
    }
    Ok(())
}
