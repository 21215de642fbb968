//! The exposition over HTTP, for what scrapes it: one request a connection, one connection at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Answers `GET /metrics` until it is dropped. A client that sends or reads slowly has two seconds; others wait meanwhile.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens at `address`; port 0 lets the system choose. `read` gives the exposition, `None` while there is nothing to tell; it is
    /// called on the thread that `spawn` starts, such as [`MetricsServer::spawn`].
    ///
    /// # Errors
    /// When the address is taken or not of this host, or the system gives no thread.
    pub fn start(
        address: SocketAddr,
        read: impl Fn() -> Option<String> + Send + 'static,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<MetricsServer> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let run = move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                match stream {
                    // Clients that go away in between are no failure of this server.
                    Ok(stream) => drop(serve(stream, &read)),
                    // Out of descriptors, most likely: the next one may do.
                    Err(_) => std::thread::sleep(PAUSE),
                }
            }
        };
        let thread = spawn(Box::new(run))?;
        Ok(MetricsServer { address, is_over, thread: Some(thread) })
    }

    /// A thread of its own.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn spawn(run: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("metrics".to_owned()).spawn(run)
    }

    /// Lets it serve until the process ends.
    pub fn detach(mut self) {
        self.thread = None;
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.is_over.store(true, Ordering::Release);
        // A connection ends the wait for one.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(if own.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
        }
        if TcpStream::connect_timeout(&own, PATIENCE).is_ok() {
            // A panic there has been reported there.
            let _ = thread.join();
        }
    }
}

fn serve(mut stream: TcpStream, read: &dyn Fn() -> Option<String>) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let Some(head) = read_head(&mut stream, deadline)? else {
        return answer(&mut stream, deadline, "431 Request Header Fields Too Large", "text/plain", "too long\n");
    };
    let line = head.lines().next().unwrap_or_default();
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET", "/metrics") => match read() {
            Some(text) => answer(&mut stream, deadline, "200 OK", OPEN_METRICS, &text),
            None => answer(&mut stream, deadline, "503 Service Unavailable", "text/plain", "nothing to tell\n"),
        },
        ("GET", _) => answer(&mut stream, deadline, "404 Not Found", "text/plain", "there is /metrics only\n"),
        _ => answer(&mut stream, deadline, "405 Method Not Allowed", "text/plain", "GET only\n"),
    }
}

/// The lines up to the empty one; `None` when they are too many.
fn read_head(stream: &mut TcpStream, deadline: Instant) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        stream.set_read_timeout(Some(rest(deadline)?))?;
        let count = stream.read(&mut part)?;
        head.extend_from_slice(&part[..count]);
        let is_whole = head.windows(4).any(|end| end == b"\r\n\r\n") || head.windows(2).any(|end| end == b"\n\n");
        if is_whole || count == 0 {
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
        if head.len() > HEAD_BYTES_MAX {
            return Ok(None);
        }
    }
}

fn answer(stream: &mut TcpStream, deadline: Instant, status: &str, format: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {format}\r\nContent-Length: {length}\r\n{allow}Connection: close\r\n\r\n"
    );
    for mut bytes in [head.as_bytes(), body.as_bytes()] {
        while !bytes.is_empty() {
            stream.set_write_timeout(Some(rest(deadline)?))?;
            let count = stream.write(bytes)?;
            bytes = &bytes[count..];
        }
    }
    stream.flush()
}

fn rest(deadline: Instant) -> io::Result<Duration> {
    let rest = deadline.saturating_duration_since(Instant::now());
    if rest.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(rest) }
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Time for one connection.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);
/// Longer than any scraper's request line and headers.
const HEAD_BYTES_MAX: usize = 8192;
