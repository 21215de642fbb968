//! `thalweg coap run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thalweg_coap::gateway::{Gateway, GatewayChanges, GatewayPlan};

use crate::interrupt::{Hangup, Interrupt};
use crate::outcome::{Failure, print_line, remark};

/// Options of `coap run`.
#[derive(Args, Debug)]
pub struct GatewayOptions {
    /// The gateway's file; its keys are in docs/gateway.md.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Read the file, say what is wrong with it, and end.
    #[arg(long)]
    pub check: bool,
}

/// Runs a gateway until Ctrl-C; SIGHUP reads the file again.
///
/// # Errors
/// The file is wrong, the address cannot be used, or the system refuses the server something.
pub fn run(options: &GatewayOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let plan = GatewayPlan::load(&options.file).map_err(Failure::Usage)?;
    if options.check {
        return print_line(format_args!("{} is right", options.file.display()));
    }
    let hangup = Hangup::watch();
    let mut gateway = Gateway::start(plan).map_err(Failure::from_cause)?;
    tell(&gateway.start_parts());
    print_line(format_args!("serving coap://{}", gateway.address()))?;
    if let Some(address) = gateway.secure_address() {
        print_line(format_args!("serving coaps://{address}"))?;
    }
    for (transport, address) in gateway.stream_addresses() {
        print_line(format_args!("serving {transport}://{address}"))?;
    }
    if let Some(address) = gateway.metrics_address() {
        print_line(format_args!("metrics http://{address}/metrics"))?;
    }
    let mut refusals = 0;
    while !interrupt.came() {
        std::thread::sleep(LOOK_PERIOD);
        if hangup.came() {
            let plan = GatewayPlan::load(&options.file);
            match plan.and_then(|plan| gateway.reload(plan).map_err(|error| error.to_string())) {
                Ok(changes) => {
                    tell(&changes);
                    print_line(format_args!("reloaded {}", options.file.display()))?;
                }
                Err(reason) => remark(format_args!("{reason}; the gateway goes on as before")),
            }
        }
        tell(&gateway.refresh());
        if let Some(failure) = gateway.failure() {
            return Err(Failure::Failed(format!("a receiver of the CoAP server ended: {failure}")));
        }
        let refused = gateway.priority_refusals();
        refused.iter().skip(refusals).for_each(remark);
        refusals = refused.len();
    }
    Ok(())
}

fn tell(changes: &GatewayChanges) {
    tell_parts("ended", &changes.ended);
    tell_parts("started", &changes.started);
    tell_parts("not started", &changes.failed);
    for setting in &changes.needs_restart {
        remark(format_args!("{setting} changes with a restart only; the old setting holds"));
    }
}

/// A gateway of thousands of parts tells of the first ones.
fn tell_parts(what: &str, parts: &[String]) {
    parts.iter().take(PARTS_TOLD).for_each(|part| remark(format_args!("{what}: {part}")));
    if parts.len() > PARTS_TOLD {
        remark(format_args!("{what}: {} more", parts.len() - PARTS_TOLD));
    }
}

const PARTS_TOLD: usize = 32;
const LOOK_PERIOD: Duration = Duration::from_millis(100);
