//! `thalweg coap discover`.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Map, Value, json};
use thalweg_coap::endpoint::{Confirmability, EndpointEvent, Peer};
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::client::ClientError;
use thalweg_coap::link_format::{self, WebLink};
use thalweg_coap::message::{RequestBuf, Response, content_format};

use super::protection::ClientProtection;
use super::target::{TargetUri, failure, representation};
use crate::outcome::{Failure, InLine, print_line, remark};

/// Options of `coap discover`.
#[derive(Args, Debug)]
pub struct DiscoverOptions {
    /// Server to ask (default: all that hear the group 224.0.1.187 on this network).
    #[arg(value_name = "HOST", default_value = ALL_NODES, hide_default_value = true, value_parser = TargetUri::parse)]
    pub target: TargetUri,

    /// Only resources with this attribute, such as rt=temperature or obs; the server filters (default: all).
    #[arg(long, value_name = "NAME=VALUE")]
    pub query: Option<String>,

    /// Wait SECONDS for answers (default: 3).
    #[arg(long, value_name = "SECONDS", default_value = "3", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub timeout: Duration,

    /// Print one line of JSON for each resource: server, target, attributes (default: one line of text for each).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// The keys of the request to one server.
    pub protection: ClientProtection,
}

/// Prints one line for each resource: server, path, attributes.
///
/// # Errors
/// No server answered in time, or an answer is not in link format.
pub fn run(options: &DiscoverOptions) -> Result<(), Failure> {
    let server = options.target.address()?;
    let path = options.query.as_ref().map_or(CORE.to_owned(), |query| format!("{CORE}?{query}"));
    let request = RequestBuf::get(&path).with_accept(content_format::LINK_FORMAT);
    if !server.ip().is_multicast() {
        let mut client = options.protection.client(&options.target, server, options.timeout)?;
        let answer = client.exchange(request, Confirmability::Confirmable, options.timeout);
        let answer = answer.map_err(|error| failure(&error))?;
        return print(options.target.transport, Peer::from(server), &answer, options.json);
    }
    let mut client = options.protection.group_client(&options.target, server)?;
    let mut asked =
        vec![client.send(server, request.clone(), Confirmability::NonConfirmable).map_err(|error| failure(&error))?];
    let (start, mut servers) = (Instant::now(), 0);
    while let Some(rest) = options.timeout.checked_sub(start.elapsed()) {
        let Some(event) = client.next(rest).map_err(|error| failure(&error))? else { break };
        match event {
            // A server sends at most one block to a group; the whole list needs a unicast request (RFC 7959 §2.8).
            EndpointEvent::Response { peer, response, .. } if response.block.is_some_and(|block| block.more) => {
                let whole = client.send(peer.address, request.clone(), Confirmability::Confirmable);
                asked.push(whole.map_err(|error| failure(&error))?);
            }
            EndpointEvent::Response { request, peer, response } if asked.contains(&request) => {
                servers += 1;
                print(options.target.transport, peer, &response, options.json)?;
            }
            EndpointEvent::Failed { request, error, .. } if asked.contains(&request) => {
                return Err(failure(&ClientError::Request(error)));
            }
            _ => {}
        }
    }
    if servers == 0 {
        let said = "no server answered; name one, or raise --timeout: answers to a group are spread over seconds";
        return Err(Failure::TimedOut(said.to_owned()));
    }
    remark(format_args!("{servers} servers answered"));
    Ok(())
}

fn print(transport: Transport, peer: Peer, response: &Response, json: bool) -> Result<(), Failure> {
    let text = representation(response)?;
    let links = link_format::parse(&text)
        .map_err(|error| Failure::Failed(format!("the answer of {peer} is not in link format (RFC 6690): {error}")))?;
    links.iter().try_for_each(|link| match json {
        true => print_line(to_json(transport, peer, link)),
        false => print_line(InLine(line(transport, peer, link))),
    })
}

fn line(transport: Transport, peer: Peer, link: &WebLink) -> String {
    let attributes = link.attributes.iter().map(|(name, value)| match value {
        Some(value) => format!(" {name}={value}"),
        None => format!(" {name}"),
    });
    format!("{transport}://{peer}{}{}", link.target, attributes.collect::<String>())
}

/// An attribute without a value is null; one that is given several times is a list.
fn to_json(transport: Transport, peer: Peer, link: &WebLink) -> Value {
    let mut attributes = Map::new();
    for (name, value) in &link.attributes {
        let value = value.as_ref().map_or(Value::Null, |value| Value::from(value.as_str()));
        match attributes.get_mut(name) {
            None => drop(attributes.insert(name.clone(), value)),
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    json!({ "server": format!("{transport}://{peer}"), "target": link.target, "attributes": attributes })
}

const CORE: &str = "/.well-known/core";
const ALL_NODES: &str = "224.0.1.187";

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn links_are_told_in_json_with_all_values_of_an_attribute() {
        let links = link_format::parse("</a>;rt=x;obs;rt=y,</b>").expect("links");
        let peer = Peer::from(SocketAddr::from(([127, 0, 0, 1], 5683)));
        let told: Vec<Value> = links.iter().map(|link| to_json(Transport::Udp, peer, link)).collect();
        assert_eq!(told[0]["attributes"], json!({ "rt": ["x", "y"], "obs": null }));
        assert_eq!((&told[1]["target"], &told[1]["attributes"]), (&json!("/b"), &json!({})));
        assert!(told[0]["server"].as_str().expect("text").starts_with("coap://127.0.0.1"), "{}", told[0]);
    }
}
