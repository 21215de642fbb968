//! How evenly a sender's packets leave.

use thalweg_transport::clock;

use crate::conformance::{Alignment, FramePacing, PacingMeter, PacingRefusal, PacingSummary};
use crate::rfc4175::PacketPlan;
use crate::sender::PacketBatch;

/// Measures the packets of a stream as they are given to the system, before a device spreads or joins them.
pub(super) struct SentPacing(Option<Result<PacingMeter, PacingRefusal>>);

impl SentPacing {
    /// Of frames cut by `plan`; of none unless it is wanted, since each packet is looked at.
    pub(super) fn new(is_wanted: bool, plan: &PacketPlan) -> SentPacing {
        SentPacing(is_wanted.then(|| meter(plan)))
    }

    /// Begins anew: the models have one number of packets for all frames.
    pub(super) fn replan(&mut self, plan: &PacketPlan) {
        *self = SentPacing::new(self.0.is_some(), plan);
    }

    /// Takes a batch that leaves now. Repetitions are not part of the models.
    pub(super) fn handle_batch(&mut self, batch: &PacketBatch<'_>) {
        let (Some(Ok(meter)), Some(place)) = (&mut self.0, batch.place()) else { return };
        let now = clock::now();
        for (packet, _) in (place.packet..).zip(batch.packets()) {
            meter.handle_packet(place.frame, packet, now);
        }
    }

    /// Ends the last frame.
    pub(super) fn finish(&mut self) {
        if let Some(Ok(meter)) = &mut self.0 {
            meter.finish_frame();
        }
    }

    pub(super) fn summary(&self) -> Option<Result<PacingSummary, PacingRefusal>> {
        Some(self.0.as_ref()?.as_ref().map(PacingMeter::summary).map_err(|refusal| *refusal))
    }
}

fn meter(plan: &PacketPlan) -> Result<PacingMeter, PacingRefusal> {
    let packets = u32::try_from(plan.frame_packets()).unwrap_or(u32::MAX);
    let pacing = FramePacing::of(plan.format(), packets, usize::from(plan.datagram_octets_max()))?;
    Ok(PacingMeter::new(pacing, Alignment::USUAL))
}
