//! Both ends with sockets, threads and the clock.

mod channel;
mod datagrams;
mod links;
mod meter;
mod received;
mod sent;
mod tcp;
mod workers;
