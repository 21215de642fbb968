//! Instructions for the machine that looks at each datagram before it is put into a socket's receive buffer: the classic
//! Berkeley Packet Filter of Linux (`SO_ATTACH_FILTER`, networking/filter.rst). The sender pays for its time on this
//! host, and a datagram that it drops costs its receiver nothing.
//!
//! The machine has an accumulator A, an index X and a datagram whose bytes 0 to 7 are the UDP header. Jumps go forward only.
//! A load beyond the end drops the datagram, so compare the length first.

use socket2::SockFilter;

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterInstruction {
    code: u16,
    then: u8,
    otherwise: u8,
    operand: u32,
}

const fn plain(code: u16, operand: u32) -> FilterInstruction {
    FilterInstruction { code, then: 0, otherwise: 0, operand }
}

/// Instructions that a jump skips: where the comparison holds, and where it does not.
pub type Skips = (u8, u8);

const fn jump(code: u16, operand: u32, (then, otherwise): Skips) -> FilterInstruction {
    FilterInstruction { code, then, otherwise, operand }
}

impl FilterInstruction {
    /// A = bytes of the datagram, the UDP header's included.
    pub const fn length() -> FilterInstruction {
        plain(LD | W | LEN, 0)
    }

    /// A = the byte at `offset`.
    pub const fn byte(offset: u32) -> FilterInstruction {
        plain(LD | B | ABS, offset)
    }

    /// A = the `width` (1, 2 or 4) bytes at X + `offset`, most significant first.
    ///
    /// # Panics
    /// For another width.
    pub const fn bytes_at_x(width: usize, offset: u32) -> FilterInstruction {
        let size = match width {
            1 => B,
            2 => H,
            4 => W,
            _ => panic!("the machine loads 1, 2 or 4 bytes"),
        };
        plain(LD | size | IND, offset)
    }

    /// A = 32 random bits.
    pub const fn random() -> FilterInstruction {
        plain(LD | W | ABS, RANDOM)
    }

    /// A = A & `mask`.
    pub const fn and(mask: u32) -> FilterInstruction {
        plain(ALU | AND, mask)
    }

    /// A = A − X.
    pub const fn subtract_x() -> FilterInstruction {
        plain(ALU | SUB | X, 0)
    }

    /// X = A.
    pub const fn to_x() -> FilterInstruction {
        plain(MISC_TAX, 0)
    }

    /// Compares A = `value`.
    pub const fn if_equal(value: u32, skips: Skips) -> FilterInstruction {
        jump(JMP | JEQ, value, skips)
    }

    /// Compares A ≥ `value`.
    pub const fn if_at_least(value: u32, skips: Skips) -> FilterInstruction {
        jump(JMP | JGE, value, skips)
    }

    /// Lets the datagram in.
    pub const fn accept() -> FilterInstruction {
        plain(RET, u32::MAX)
    }

    /// Drops it.
    pub const fn drop() -> FilterInstruction {
        plain(RET, 0)
    }

    pub(crate) fn encode(self) -> SockFilter {
        SockFilter::new(self.code, self.then, self.otherwise, self.operand)
    }
}

// linux/bpf_common.h and linux/filter.h.
const LD: u16 = 0x00;
const ALU: u16 = 0x04;
const JMP: u16 = 0x05;
const RET: u16 = 0x06;
const MISC_TAX: u16 = 0x07;
const W: u16 = 0x00;
const H: u16 = 0x08;
const B: u16 = 0x10;
const ABS: u16 = 0x20;
const IND: u16 = 0x40;
const LEN: u16 = 0x80;
const X: u16 = 0x08;
const SUB: u16 = 0x10;
const AND: u16 = 0x50;
const JEQ: u16 = 0x10;
const JGE: u16 = 0x30;
/// `SKF_AD_OFF + SKF_AD_RANDOM`.
const RANDOM: u32 = (-0x1000_i32 + 56) as u32;
