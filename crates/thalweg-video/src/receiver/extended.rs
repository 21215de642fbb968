//! Whether the upper halves of numbers tell something: some senders count in 16 bits and send 0 above them.

/// Packets in a row whose upper halves agree before they are used.
const EXTENDED_TRUST: u32 = 64;
/// Packets in a row whose upper halves differ before that trust ends: a single one may be damaged or forged.
const EXTENDED_DOUBT: u32 = 16;

/// Whether the upper halves of a sender's numbers count on as they should.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extended {
    /// Packets that agreed, until one does not before there is trust.
    agreeing: u32,
    /// Packets in a row that did not.
    differing: u32,
}

impl Extended {
    /// Takes the number of a packet, as it was counted on, and the upper half that came with it.
    pub(super) fn record(&mut self, number: u64, extended: u16) {
        if (number >> 16) as u16 == extended {
            (self.agreeing, self.differing) = (self.agreeing.saturating_add(1), 0);
            return;
        }
        self.differing = self.differing.saturating_add(1);
        if !self.is_trusted() || self.differing >= EXTENDED_DOUBT {
            self.agreeing = 0;
        }
    }

    /// Whether upper halves tell numbers.
    pub(super) fn is_trusted(self) -> bool {
        self.agreeing >= EXTENDED_TRUST
    }
}
