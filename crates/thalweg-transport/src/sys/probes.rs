//! Static probes for tracers: a NOP and a note in the program for each point.

use probe::probe;
use thalweg_base::point::Point;

/// Fires the probe of `point`.
#[inline]
pub(crate) fn fire(point: Point, writer: u32, sequence: i64) {
    match point {
        Point::WriteEnter => probe!(thalweg, write_enter, writer, sequence),
        Point::Serialized => probe!(thalweg, serialized, writer, sequence),
        Point::Stored => probe!(thalweg, stored, writer, sequence),
        Point::TokenGranted => probe!(thalweg, token_granted, writer, sequence),
        Point::Packed => probe!(thalweg, packed, writer, sequence),
        Point::SendEnter => probe!(thalweg, send_enter, writer, sequence),
        Point::SendExit => probe!(thalweg, send_exit, writer, sequence),
        Point::Received => probe!(thalweg, received, writer, sequence),
        Point::Parsed => probe!(thalweg, parsed, writer, sequence),
        Point::Reassembled => probe!(thalweg, reassembled, writer, sequence),
        Point::Ordered => probe!(thalweg, ordered, writer, sequence),
        Point::Cached => probe!(thalweg, cached, writer, sequence),
        Point::Notified => probe!(thalweg, notified, writer, sequence),
        Point::Taken => probe!(thalweg, taken, writer, sequence),
    }
}
