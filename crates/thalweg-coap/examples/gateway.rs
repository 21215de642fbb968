//! A gateway by a file: `thalweg coap run` in a program of one's own. Without an argument it runs the file below.
//!
//! `cargo run -p thalweg-coap --example gateway [FILE]`

use std::path::Path;

use thalweg_coap::gateway::{Gateway, GatewayPlan};

const FILE: &str = r#"
schema = "thalweg.gateway/1"
server = { bind = "127.0.0.1:0", metrics = "127.0.0.1:0" }

[[device]]
driver = "kit"
name = "hall"
model = "temphumi"
adaptive = { error = 0.2, min_ms = 100, max_ms = 10_000 }

[[service]]
name = "mean"
does = "mean"
inputs = ["/sensors/hall/temperature"]
output = "/house/temperature"

[[pack]]
path = "all"
root = "sensors"

[directory]
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan = match std::env::args().nth(1) {
        Some(file) => GatewayPlan::load(Path::new(&file))?,
        None => GatewayPlan::parse("gateway.toml", FILE)?,
    };
    let mut gateway = Gateway::start(plan)?;
    for part in gateway.start_parts().started {
        println!("started: {part}");
    }
    println!("serving coap://{}, metrics at {:?}", gateway.address(), gateway.metrics_address());
    println!("{}", gateway.store().paths().join("\n"));
    if std::env::args().len() > 1 {
        loop {
            gateway.refresh();
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }
    Ok(())
}
