//! Queueing disciplines of interfaces (tc(8)), by rtnetlink.

use std::io::{self, Read};

use socket2::{Domain, Protocol, Socket, Type};

/// The root discipline of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootQueue {
    /// The kernel's number of the interface.
    pub interface: u32,
    /// Name of the discipline, such as `fq`.
    pub kind: String,
    /// Whether the kernel chose it itself: a discipline that somebody configured has a handle.
    pub is_default: bool,
}

/// The root disciplines of all interfaces of this network namespace; interfaces without a queue have none, or `noqueue`.
///
/// # Errors
/// The system's error.
pub fn root_queues() -> io::Result<Vec<RootQueue>> {
    let socket = open()?;
    socket.send(&request(libc::RTM_GETQDISC, libc::NLM_F_DUMP, 0, 0, None))?;
    let mut queues = Vec::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    for _ in 0..READS_MAX {
        let bytes = (&socket).read(&mut buffer)?;
        let (found, end) = parse(&buffer[..bytes]);
        queues.extend(found);
        match end {
            Some(0) => return Ok(queues),
            Some(errno) => return Err(io::Error::from_raw_os_error(errno)),
            None => {}
        }
    }
    Err(io::Error::other("the list of queueing disciplines does not end"))
}

/// Puts a discipline with its own defaults at the root of an interface.
///
/// # Errors
/// The right is missing (`CAP_NET_ADMIN`), or this kernel has no such discipline (`ENOENT`).
pub fn set_root_queue(interface: u32, kind: &str) -> io::Result<()> {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    tell(&request(libc::RTM_NEWQDISC, flags, interface, ROOT_HANDLE, Some(kind)))
}

/// Removes the root discipline of an interface; the kernel puts its own default there.
///
/// # Errors
/// The right is missing (`CAP_NET_ADMIN`), or the discipline is the kernel's own (`ENOENT`).
pub fn remove_root_queue(interface: u32) -> io::Result<()> {
    tell(&request(libc::RTM_DELQDISC, libc::NLM_F_ACK, interface, 0, None))
}

fn open() -> io::Result<Socket> {
    let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(libc::NETLINK_ROUTE)))?;
    socket.set_read_timeout(Some(std::time::Duration::from_secs(2)))?;
    Ok(socket)
}

fn tell(request: &[u8]) -> io::Result<()> {
    let socket = open()?;
    socket.send(request)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let bytes = (&socket).read(&mut buffer)?;
    match parse(&buffer[..bytes]).1 {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::Error::other("the kernel did not acknowledge the change of a queueing discipline")),
    }
}

/// nlmsghdr, tcmsg and the attribute TCA_KIND.
fn request(kind: u16, flags: libc::c_int, interface: u32, handle: u32, name: Option<&str>) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend([0; 4]);
    body.extend(interface.to_ne_bytes());
    body.extend(handle.to_ne_bytes());
    body.extend(if interface == 0 { 0 } else { PARENT_ROOT }.to_ne_bytes());
    body.extend([0; 4]);
    if let Some(name) = name {
        let len = ATTRIBUTE_HEADER + name.len() + 1;
        body.extend((len as u16).to_ne_bytes());
        body.extend(TCA_KIND.to_ne_bytes());
        body.extend(name.bytes());
        body.resize(TC_MESSAGE + len.next_multiple_of(4), 0);
    }
    let mut bytes = Vec::new();
    bytes.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(((flags | libc::NLM_F_REQUEST) as u16).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// Root disciplines among these messages, and where the messages end: 0 for a good end, else the error number.
fn parse(mut bytes: &[u8]) -> (Vec<RootQueue>, Option<i32>) {
    let mut found = Vec::new();
    while let (Some(len), Some(kind)) = (word(bytes, 0), short(bytes, 4)) {
        let Some(body) = bytes.get(HEADER..len as usize) else { break };
        match i32::from(kind) {
            libc::NLMSG_DONE => return (found, Some(0)),
            libc::NLMSG_ERROR => {
                return (found, Some(word(body, 0).map_or(libc::EPROTO, |errno| (errno as i32).wrapping_neg())));
            }
            _ if kind == libc::RTM_NEWQDISC => found.extend(root_queue(body)),
            _ => {}
        }
        bytes = bytes.get((len as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    (found, None)
}

fn root_queue(body: &[u8]) -> Option<RootQueue> {
    let (interface, handle, parent) = (word(body, 4)?, word(body, 8)?, word(body, 12)?);
    if parent != PARENT_ROOT {
        return None;
    }
    let mut rest = body.get(TC_MESSAGE..)?;
    while let (Some(len), Some(kind)) = (short(rest, 0), short(rest, 2)) {
        let data = rest.get(ATTRIBUTE_HEADER..usize::from(len))?;
        if kind == TCA_KIND {
            let name: Vec<u8> = data.iter().copied().take_while(|byte| *byte != 0).collect();
            let kind = String::from_utf8_lossy(&name).into_owned();
            return Some(RootQueue { interface, kind, is_default: handle == 0 });
        }
        rest = rest.get(usize::from(len).next_multiple_of(4)..).unwrap_or_default();
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

/// `sizeof(struct nlmsghdr)`.
const HEADER: usize = 16;
/// `sizeof(struct tcmsg)`.
const TC_MESSAGE: usize = 20;
const ATTRIBUTE_HEADER: usize = 4;
/// From linux/rtnetlink.h and linux/pkt_sched.h.
const TCA_KIND: u16 = 1;
const PARENT_ROOT: u32 = 0xffff_ffff;
/// `8001:`, as tc(8) numbers the first one itself; a discipline without a handle would pass for the kernel's own.
const ROOT_HANDLE: u32 = 0x8001_0000;
/// The kernel's largest part of a list is 32 KiB.
const BUFFER_BYTES: usize = 64 << 10;
/// Interfaces are a few thousand at most, and a part holds about a hundred of them.
const READS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_base::rng::Rng;

    #[test]
    fn a_discipline_is_read_from_the_bytes_of_a_request() {
        let check = |bytes: &[u8], expect: Option<RootQueue>| assert_eq!(parse(bytes).0.pop(), expect);
        let fq = RootQueue { interface: 7, kind: "fq".to_owned(), is_default: false };
        check(&request(libc::RTM_NEWQDISC, 0, 7, ROOT_HANDLE, Some("fq")), Some(fq.clone()));
        check(&request(libc::RTM_NEWQDISC, 0, 7, 0, Some("fq")), Some(RootQueue { is_default: true, ..fq }));
        check(&request(libc::RTM_NEWQDISC, 0, 7, 0, None), None);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_always_end() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let mut bytes = request(libc::RTM_NEWQDISC, 0, 7, ROOT_HANDLE, Some("pfifo_fast"));
            bytes.extend(request(libc::RTM_NEWQDISC, 0, 8, 0, Some("mq")));
            for _ in 0..rng.below(8) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            parse(&bytes[..rng.below(bytes.len() as u64 + 1) as usize]);
        }
        assert_eq!(parse(&[0; 64]).0, []);
    }

    #[test]
    fn the_kernel_lists_disciplines_and_refuses_one_for_an_interface_that_is_not_there() {
        root_queues().expect("a list");
        let refusal = set_root_queue(i32::MAX as u32, "fq").unwrap_err();
        assert!(matches!(refusal.raw_os_error(), Some(libc::ENODEV | libc::EPERM)), "{refusal}");
    }
}
