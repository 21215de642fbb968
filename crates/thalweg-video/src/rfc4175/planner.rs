//! How a field is cut into packets: decided once, the same for every field of a stream.

use std::fmt;

use super::{EXTENDED_SEQUENCE_OCTETS, LINE_HEADER_OCTETS, PIECES_MAX};
use crate::format::VideoFormat;
use crate::rtp;

/// Packets of a field at most; 8K UHD takes 69,120 in packets of an Ethernet of 1500 octets.
pub const PACKETS_MAX: usize = 1 << 17;
/// The largest datagram of [`Packing::Equal`]. Linux charges a datagram to the socket's buffer by the memory it lies
/// in: 1.08 times its size at 7,800 octets and 2.05 times at 8,132, so that filling a jumbo frame halves the buffer.
pub const EQUAL_DATAGRAM_OCTETS_MAX: usize = 7800;
/// The largest datagram of ST 2110-10's standard size limit: 1460 octets with the 8 of UDP.
pub const STANDARD_DATAGRAM_OCTETS: usize = 1452;
/// Pieces of a packet of this planner at most (ST 2110-20).
const PLANNED_PIECES_MAX: usize = 3;
/// A block of ST 2110-20's block packing mode in octets: whole pixel groups of every format.
const BLOCK_OCTETS: usize = 180;
/// Octets before the line headers: those of RTP and the extended sequence number.
const FIXED_OCTETS: usize = rtp::HEADER_OCTETS + EXTENDED_SEQUENCE_OCTETS;

/// The IP header below, which takes from the MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpHeader {
    /// 20 octets of IP and 8 of UDP.
    V4,
    /// 40 octets of IP and 8 of UDP.
    V6,
}

impl IpHeader {
    /// The largest datagram that fits `mtu` octets without fragments; 0 when none fits.
    pub const fn datagram_octets(self, mtu: usize) -> usize {
        mtu.saturating_sub(match self {
            IpHeader::V4 => 28,
            IpHeader::V6 => 48,
        })
    }
}

/// How much of a field a packet takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// Packets of one size, at the cost of some more packets, so that the kernel can cut many out of one message (UDP
    /// segmentation offload). 1920x1080 with 10 bits: 1200 octets of picture from an MTU of 1500 on, 4800 from 4,900 on
    /// and 7200 from 7,300 on.
    #[default]
    Equal,
    /// Whole blocks of 180 octets, across the ends of lines: the block packing mode of ST 2110-20 (1260 octets of
    /// picture in [`STANDARD_DATAGRAM_OCTETS`]). The sizes of datagrams differ by their line headers. Pictures of which a block touches
    /// more than three lines are filled instead.
    Blocks,
    /// As much as fits: the form of the paper of 2006 (8,935 to 8,945 octets of picture at an MTU of 9000, 580 packets a frame).
    Fill,
}

/// A piece of one line in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedPiece {
    /// The line within its field.
    pub line: u16,
    /// The first pixel in the line.
    pub offset: u16,
    /// Where the piece begins in its line, in octets.
    pub at: u32,
    /// Octets of the piece.
    pub length: u16,
}

/// The size of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketShape {
    /// Octets of the datagram: headers and picture.
    pub datagram_octets: u16,
    /// Octets of the headers before the picture.
    pub header_octets: u16,
    first_piece: u32,
    pieces: u16,
}

/// The packets of a field, in their order.
#[derive(Clone, Debug)]
pub struct PacketPlan {
    format: VideoFormat,
    packing: Packing,
    shapes: Vec<PacketShape>,
    pieces: Vec<PlannedPiece>,
}

impl PacketPlan {
    /// Cuts the fields of `format` into datagrams of at most `datagram_octets_max` octets of UDP payload; see
    /// [`IpHeader::datagram_octets`].
    ///
    /// # Errors
    ///
    /// A datagram holds no pixel group, or a field takes more than [`PACKETS_MAX`] packets.
    pub fn new(format: VideoFormat, packing: Packing, datagram_octets_max: usize) -> Result<PacketPlan, PlanError> {
        let cutter = Cutter::new(format, datagram_octets_max.min(usize::from(u16::MAX)))?;
        let (packing, starts) = match packing {
            Packing::Equal => (packing, cutter.equal()),
            Packing::Blocks => match cutter.blocks()? {
                Some(starts) => (packing, starts),
                None => (Packing::Fill, cutter.fill()),
            },
            Packing::Fill => (packing, cutter.fill()),
        };
        if starts.len() > PACKETS_MAX {
            return Err(PlanError::Packets { packets: starts.len() });
        }
        let mut plan = PacketPlan { format, packing, shapes: Vec::with_capacity(starts.len()), pieces: Vec::new() };
        let ends = starts.iter().skip(1).copied().chain([format.field_octets()]);
        starts.iter().zip(ends).for_each(|(start, end)| plan.add(*start, end));
        Ok(plan)
    }

    /// The format whose fields it cuts.
    pub const fn format(&self) -> VideoFormat {
        self.format
    }

    /// How it was made: filled where blocks were asked for and lines are too short for them.
    pub const fn packing(&self) -> Packing {
        self.packing
    }

    /// Packets of a field.
    pub fn field_packets(&self) -> usize {
        self.shapes.len()
    }

    /// Packets of a frame: of both fields where there are two.
    pub fn frame_packets(&self) -> usize {
        self.shapes.len() * usize::from(self.format.scan().fields())
    }

    /// Packet `index` of a field, with its pieces.
    ///
    /// # Panics
    ///
    /// There are no more than `index` packets.
    pub fn packet(&self, index: usize) -> (PacketShape, &[PlannedPiece]) {
        let shape = self.shapes[index];
        let first = shape.first_piece as usize;
        (shape, &self.pieces[first..first + usize::from(shape.pieces)])
    }

    /// The octets of every datagram, if all are equal.
    pub fn equal_datagram_octets(&self) -> Option<u16> {
        let first = self.shapes.first()?.datagram_octets;
        self.shapes.iter().all(|shape| shape.datagram_octets == first).then_some(first)
    }

    /// The octets of the largest datagram.
    pub fn datagram_octets_max(&self) -> u16 {
        self.shapes.iter().map(|shape| shape.datagram_octets).max().unwrap_or_default()
    }

    /// The octets of all datagrams of a frame: headers and picture, without UDP and below.
    pub fn frame_datagram_octets(&self) -> usize {
        let field: usize = self.shapes.iter().map(|shape| usize::from(shape.datagram_octets)).sum();
        field * usize::from(self.format.scan().fields())
    }

    /// Adds the packet with the octets of a field from `start` to `end`.
    fn add(&mut self, start: usize, end: usize) {
        let (line_octets, group) = (self.format.line_octets(), self.format.pixels().group());
        let first_piece = self.pieces.len();
        let mut at = start;
        while at < end {
            let (line, in_line) = (at / line_octets, at % line_octets);
            let length = (line_octets - in_line).min(end - at);
            self.pieces.push(PlannedPiece {
                line: u16::try_from(line).expect("a field has at most HEIGHT_MAX lines"),
                offset: u16::try_from(in_line / usize::from(group.octets) * usize::from(group.pixels))
                    .expect("a line has at most WIDTH_MAX pixels"),
                at: u32::try_from(in_line).expect("a line is shorter than a frame"),
                length: u16::try_from(length).expect("a piece fits a datagram"),
            });
            at += length;
        }
        let pieces = self.pieces.len() - first_piece;
        let header_octets = FIXED_OCTETS + pieces * LINE_HEADER_OCTETS;
        self.shapes.push(PacketShape {
            datagram_octets: u16::try_from(header_octets + end - start).expect("bounded by the cutter"),
            header_octets: u16::try_from(header_octets).expect("a few pieces"),
            first_piece: u32::try_from(first_piece).expect("at most three pieces a packet"),
            pieces: u16::try_from(pieces).expect("a few pieces"),
        });
    }
}

/// Finds where packets begin in a field.
struct Cutter {
    line: usize,
    field: usize,
    lines: usize,
    group: usize,
    datagram_max: usize,
}

impl Cutter {
    fn new(format: VideoFormat, datagram_max: usize) -> Result<Cutter, PlanError> {
        let group = usize::from(format.pixels().group().octets);
        let cutter = Cutter {
            line: format.line_octets(),
            field: format.field_octets(),
            lines: usize::from(format.field_height()),
            group,
            datagram_max,
        };
        let needed = FIXED_OCTETS + LINE_HEADER_OCTETS + group;
        if cutter.room(1) == 0 {
            return Err(PlanError::Datagram { octets: datagram_max, needed });
        }
        // A field of the smallest packets, so that no list grows before it is refused.
        match cutter.field / cutter.room(1) {
            packets if packets > PACKETS_MAX => Err(PlanError::Packets { packets }),
            _ => Ok(cutter),
        }
    }

    /// Octets of picture beside the headers of `pieces` pieces: whole pixel groups.
    fn room(&self, pieces: usize) -> usize {
        let room = self.datagram_max.saturating_sub(FIXED_OCTETS + pieces * LINE_HEADER_OCTETS);
        room - room % self.group
    }

    /// The pieces of a packet with `octets` octets from `start` on.
    fn pieces(&self, start: usize, octets: usize) -> usize {
        (start + octets - 1) / self.line - start / self.line + 1
    }

    /// Packets of one size. Where no such size comes close to the largest, lines are cut alike instead.
    fn equal(&self) -> Vec<usize> {
        let bounded = Cutter { datagram_max: self.datagram_max.min(EQUAL_DATAGRAM_OCTETS_MAX), ..*self };
        let alike = bounded.alike();
        match bounded.equal_size() {
            Some(octets) if self.field / octets * 2 <= alike.len() * 3 => (0..self.field).step_by(octets).collect(),
            _ => alike,
        }
    }

    /// The most octets of picture that every packet can have, each with the same number of pieces.
    fn equal_size(&self) -> Option<usize> {
        let sizes = (1..=self.room(1) / self.group).rev().map(|groups| groups * self.group);
        sizes.filter(|octets| self.field.is_multiple_of(*octets)).find(|octets| {
            let pieces = self.pieces(0, *octets);
            pieces <= PLANNED_PIECES_MAX
                && *octets <= self.room(pieces)
                && (0..self.field).step_by(*octets).all(|start| self.pieces(start, *octets) == pieces)
        })
    }

    /// Whole lines, as many as fit, or each line in parts of which only the last may be shorter.
    fn alike(&self) -> Vec<usize> {
        let fitting = (1..=PLANNED_PIECES_MAX).rev().find(|lines| lines * self.line <= self.room(*lines));
        if let Some(lines) = fitting {
            return (0..self.lines).step_by(lines).map(|line| line * self.line).collect();
        }
        let groups = self.line / self.group;
        let parts = self.line.div_ceil(self.room(1));
        let octets = groups.div_ceil(parts) * self.group;
        let in_line = |line| (0..self.line).step_by(octets).map(move |at| line * self.line + at);
        (0..self.lines).flat_map(in_line).collect()
    }

    /// As many whole blocks as fit every packet alike; none where lines are too short for a single one.
    fn blocks(&self) -> Result<Option<Vec<usize>>, PlanError> {
        // Two pieces always: the end of a line lies in most packets.
        let most = self.room(2) / BLOCK_OCTETS;
        if most == 0 {
            let needed = FIXED_OCTETS + 2 * LINE_HEADER_OCTETS + BLOCK_OCTETS;
            return Err(PlanError::Datagram { octets: self.datagram_max, needed });
        }
        let fits = |start: usize, octets: usize| {
            let octets = octets.min(self.field - start);
            let pieces = self.pieces(start, octets);
            pieces <= PLANNED_PIECES_MAX && octets <= self.room(pieces)
        };
        // Short lines leave room for fewer blocks: more headers, of three lines at most.
        let mut sizes = (1..=most).rev().map(|blocks| blocks * BLOCK_OCTETS);
        let size = sizes.find(|octets| (0..self.field).step_by(*octets).all(|start| fits(start, *octets)));
        Ok(size.map(|octets| (0..self.field).step_by(octets).collect()))
    }

    fn fill(&self) -> Vec<usize> {
        let mut starts = Vec::new();
        let mut at = 0;
        while at < self.field {
            starts.push(at);
            at += self.most(at).min(self.field - at);
        }
        starts
    }

    /// The most octets from `start` on that fit with the headers of the lines they touch.
    fn most(&self, start: usize) -> usize {
        let to_line_end = self.line - start % self.line;
        let most = (1..=PLANNED_PIECES_MAX).map(|pieces| self.room(pieces).min(to_line_end + (pieces - 1) * self.line));
        most.max().unwrap_or_default()
    }
}

// Packets of this planner are read by this crate's receiver.
const _: () = assert!(PLANNED_PIECES_MAX <= PIECES_MAX);

/// Why a field cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No pixel group, or no block, fits beside the headers.
    Datagram {
        /// The largest datagram.
        octets: usize,
        /// The smallest datagram that does.
        needed: usize,
    },
    /// A field takes too many packets.
    Packets {
        /// Its packets, at least.
        packets: usize,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Datagram { octets, needed } => {
                write!(formatter, "datagrams of {octets} octets hold no picture: give {needed} or more")
            }
            PlanError::Packets { packets } => {
                write!(formatter, "a field takes {packets} packets, more than {PACKETS_MAX}: give larger datagrams")
            }
        }
    }
}

impl std::error::Error for PlanError {}
