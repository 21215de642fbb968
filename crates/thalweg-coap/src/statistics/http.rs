//! The exposition over HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use thalweg_metrics::MetricsServer;

use super::{FigureSource, to_open_metrics};
use crate::scheduler::thread_pool::{ThreadGroup, ThreadPoolManager};

/// Answers `GET /metrics` at `address` on a thread of the profile group; port 0 lets the system choose.
///
/// # Errors
/// When the address is taken or not of this host, or the system gives no thread.
pub fn serve_metrics(
    address: SocketAddr,
    source: FigureSource,
    threads: &Arc<ThreadPoolManager>,
) -> io::Result<MetricsServer> {
    let read = move || source.read().map(|figures| to_open_metrics(&figures));
    MetricsServer::start(address, read, |run| threads.spawn(ThreadGroup::Profile, "metrics", run))
}
