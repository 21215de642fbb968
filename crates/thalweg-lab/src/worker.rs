//! The orders that a process of an experiment understands.

use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use thalweg_lab_station::serve;

use crate::benchmark::{self, BesideOrder, BurstOrder};
use crate::error::LabError;
use crate::network::{self, RelayOrder};
use crate::paper3::{self, ModerationOrder, TopicOrder};
use crate::paper5::{self, LoadOrder};
use crate::perf::{self, Measurement, PerfOptions, ProbeEndOrder};
use crate::process::ParentPipe;
use crate::station::Setup;
use crate::trial::{self, TrialOrder};

/// The order of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// The reading end of `perf`.
    PerfReader(PerfOptions<Setup>),
    /// The writing end.
    PerfWriter(PerfOptions<Setup>),
    /// The serving end of probes.
    ProbeEnd(ProbeEndOrder),
    /// The process that makes bursts on demand.
    BurstPublisher(BurstOrder),
    /// The one that echoes them.
    BurstSubscriber(BurstOrder),
    /// The sending process of a small topic beside transfers.
    BesideSender(BesideOrder),
    /// Its receiver.
    BesideReceiver(BesideOrder),
    /// Endpoints of one run of a scenario.
    Trial(TrialOrder),
    /// The switch between hosts, which impairs forwarded frames.
    Relay(RelayOrder),
    /// The clients of a CoAP server.
    CoapLoad(LoadOrder),
    /// Sets an interface of a host.
    Moderation(ModerationOrder),
    /// The end that publishes a picture.
    PicturePublisher(TopicOrder),
    /// The end that takes it.
    PictureSubscriber(TopicOrder),
}

/// Runs the order that stands on standard input; a hidden sub-command of the program calls this.
pub fn run_worker() -> ExitCode {
    serve(Box::new(std::io::stdout()), |order: Order, link: &ParentPipe| obey(order, link))
}

fn obey(order: Order, link: &ParentPipe) -> Result<serde_json::Value, LabError> {
    match order {
        Order::PerfReader(options) => match options.measurement {
            Measurement::Latency => perf::pong(&options, link.stop()).map(|()| serde_json::Value::Null),
            Measurement::Throughput => to_value(&perf::read(&options, link.stop())?),
        },
        Order::PerfWriter(options) => match options.measurement {
            Measurement::Latency => to_value(&perf::ping(&options, link.stop())?),
            Measurement::Throughput => to_value(&perf::write(&options, link.stop())?),
        },
        Order::ProbeEnd(order) => to_value(&perf::serve(&order, link)?),
        Order::BurstPublisher(order) => to_value(&benchmark::publish(&order, link)?),
        Order::BurstSubscriber(order) => to_value(&benchmark::subscribe(&order, link)?),
        Order::BesideSender(order) => to_value(&benchmark::send(&order, link)?),
        Order::BesideReceiver(order) => to_value(&benchmark::receive(&order, link)?),
        Order::Trial(order) => to_value(&trial::work(&order, link)?),
        Order::Relay(order) => to_value(&network::work(&order, link)?),
        Order::CoapLoad(order) => to_value(&paper5::make_load(&order, link)?),
        Order::Moderation(order) => to_value(&paper3::moderate(&order)?),
        Order::PicturePublisher(order) => paper3::publish_picture(&order, link),
        Order::PictureSubscriber(order) => paper3::subscribe_picture(&order, link),
    }
}

fn to_value(result: &impl Serialize) -> Result<serde_json::Value, LabError> {
    serde_json::to_value(result).map_err(LabError::here)
}
