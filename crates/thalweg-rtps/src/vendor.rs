//! What sets the implementations of other vendors apart, as far as Thalweg has to know it: each difference once, with its source.

use crate::types::VendorId;

/// What the participants, writers and readers of a vendor do.
#[derive(Debug)]
pub(crate) struct VendorTraits {
    /// Its readers take the last number of the first HEARTBEAT that they see for the end of what they have missed, and acknowledge that:
    /// Cyclone DDS (`docs/decisions/0004-patience.md`).
    pub needs_proof_of_match: bool,
    /// Its readers go on using the parts of a sample that a GAP has freed: Fast DDS 3.1.2, `StatefulReader::process_gap_msg`
    /// (`docs/decisions/0004-patience.md`).
    pub hangs_on_gap_of_begun_sample: bool,
    /// Its readers number the fragments of a sample by the size of the first that came (RTPS 2.5 §8.4.14.1): Fast DDS 3.1.2,
    /// `CacheChange_t::add_fragments` (`docs/decisions/0008-path-mtu.md`).
    pub keeps_fragment_size: bool,
    /// Its readers answer every HEARTBEAT_FRAG, and tell so how far a sample has come (`docs/decisions/0005-fragment-progress.md`).
    pub confirms_fragments: bool,
    /// Its readers ask for a HEARTBEAT until they have heard one, so that such an ACKNACK without an ECHO answers none.
    pub asks_until_greeted: bool,
    /// Its readers ask for nothing that was not announced to them: one that does was deceived
    /// (`docs/decisions/0018-plausible-before-believed.md`).
    pub asks_for_announced_only: bool,
    /// Its readers may begin anew under their old GUID, which follows from an address or a process.
    pub may_begin_anew: bool,
    /// Its writers of endpoint discovery speak first (`docs/decisions/0011-a-crowd-is-slow.md`).
    pub greets: bool,
    /// Its participants challenge others with empty HEARTBEATs that are to be answered (`docs/decisions/0014-strangers.md`).
    pub challenges_strangers: bool,
    /// Its participants hear user data on 127.0.0.1 without announcing it
    /// (`docs/decisions/0017-what-a-reader-does-not-hand-over.md`).
    pub listens_on_loopback: bool,
    /// Its participants have Thalweg's services (`docs/decisions/0019-built-in-services.md`).
    pub has_services: bool,
}

const THALWEG: VendorTraits = VendorTraits {
    needs_proof_of_match: false,
    hangs_on_gap_of_begun_sample: false,
    keeps_fragment_size: false,
    confirms_fragments: true,
    asks_until_greeted: true,
    asks_for_announced_only: true,
    may_begin_anew: false,
    greets: true,
    challenges_strangers: true,
    listens_on_loopback: true,
    has_services: true,
};

/// What one of the others needs harms none of them, and a product may hide another one under a name of its own.
const OTHERS: VendorTraits = VendorTraits {
    needs_proof_of_match: true,
    hangs_on_gap_of_begun_sample: true,
    keeps_fragment_size: true,
    confirms_fragments: false,
    asks_until_greeted: false,
    asks_for_announced_only: false,
    may_begin_anew: true,
    greets: false,
    challenges_strangers: false,
    listens_on_loopback: false,
    has_services: false,
};

impl VendorId {
    pub(crate) fn traits(self) -> &'static VendorTraits {
        if self == VendorId::THALWEG { &THALWEG } else { &OTHERS }
    }
}
