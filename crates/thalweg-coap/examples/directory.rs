//! A resource directory and packs of SenML, without network: what others register is found, and readings travel together.
//!
//! `cargo run -p thalweg-coap --example directory`

use thalweg_base::time::Instant;
use thalweg_coap::device::Value;
use thalweg_coap::directory::ResourceDirectory;
use thalweg_coap::link_format;
use thalweg_coap::message::content_format;
use thalweg_coap::senml::{self, SenmlRecord};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let now = Instant::ZERO;
    let mut directory = ResourceDirectory::new();
    let links = br#"</sensors/temp>;rt="temperature";ct=110,</light>;rt="lamp""#;
    let query = ["ep=node1", "lt=600", "base=coap://[2001:db8::1]"];
    // Requests of this program itself have no caller.
    let (location, _) = directory.handle_registration(now, None, query.into_iter(), links)?;
    println!("registered as {location}");
    let found = directory.find_resources(None, ["rt=temperature"].into_iter())?;
    println!("{}", link_format::encode(found.iter()));

    let readings = [
        SenmlRecord::new("node1/temp", "Cel", Value::Real(21.5)),
        SenmlRecord::new("node1/light", "", Value::Boolean(true)),
    ];
    let json = senml::encode(content_format::SENML_JSON, &readings)?;
    println!("{}", String::from_utf8_lossy(&json));
    for record in senml::parse(content_format::SENML_JSON, &json)? {
        println!("{} = {:?} {}", record.name, record.value, record.unit);
    }
    Ok(())
}
