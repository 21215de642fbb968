//! The `thalweg` program as its users see it: processes, pipes, signals, exit codes.

mod agents;
mod benchmark;
mod chart;
mod coap;
mod coap_bridge;
mod coap_gateway;
mod coap_oscore;
mod contact;
mod documents;
mod exchange;
mod flows;
mod help;
mod lab;
mod measure;
mod methods;
mod paper1;
mod paper4;
mod paper5;
mod peers;
mod probe;
mod profile;
mod program;
mod scenario;
mod video;
mod why;
mod workers;
