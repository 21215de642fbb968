//! Cyclone's settings, in its own XML.

use peer_protocol::{Interface, PeerProfile, PeerSetup};

/// One interface alone, no shared memory (it is not built in). Data goes by unicast, except to several readers in the
/// tuned profiles, where one multicast datagram serves all.
pub fn text(setup: &PeerSetup) -> Result<String, String> {
    let tuned = setup.profile != PeerProfile::Default;
    let multicast = if tuned && setup.topic_readers > 1 { "true" } else { "spdp" };
    // Elsewhere than on loopback, datagrams of 64 KiB would travel as IP fragments.
    let general = if tuned && setup.address.is_loopback() { LARGE_DATAGRAMS } else { "" };
    let internal = if tuned { TUNED_INTERNAL } else { "" };
    let interface = Interface::with_address(setup.address)?.name;
    Ok(format!(
        r#"<CycloneDDS><Domain><General>
        <Interfaces><NetworkInterface name="{interface}" multicast="true"/></Interfaces>
        <AllowMulticast>{multicast}</AllowMulticast>{general}
        </General><Internal>{internal}</Internal></Domain></CycloneDDS>"#
    ))
}

/// The loopback interface carries datagrams of 64 KiB: fewer of them, and fewer fragments a sample.
const LARGE_DATAGRAMS: &str = "<MaxMessageSize>65500B</MaxMessageSize><FragmentSize>60000B</FragmentSize>\
    <MaxRexmitMessageSize>65500B</MaxRexmitMessageSize>";

/// Socket buffers for a burst, and a write cache that starts with the room that it would otherwise grow into.
const TUNED_INTERNAL: &str = "<SocketReceiveBufferSize max=\"4MiB\"/><SocketSendBufferSize max=\"4MiB\"/>\
    <Watermarks><WhcHigh>2MiB</WhcHigh><WhcHighInit>2MiB</WhcHighInit><WhcLow>64KiB</WhcLow></Watermarks>";
