//! Closed sets of words in session descriptions.

use super::error::SdpFault;

/// Defines an enum whose variants have a word each, so that reading and writing cannot differ.
///
/// `words!(/// Doc. Letter, "letters", { /// First. A = "a" })` gives `pub enum Letter { A }`, `Letter::ALL`, `Letter::word`
/// and `Letter::from_word`, which refuses other words with the expectation given.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $expected:literal, { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The word in a session description.
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            pub(super) fn from_word(key: &str, word: &str) -> Result<$name, SdpFault> {
                let found = $name::ALL.iter().find(|value| value.word() == word);
                found.copied().ok_or_else(|| SdpFault::invalid(key, word, $expected))
            }
        }
    };
}

words!(
    /// Color components and their subsampling (RFC 4175 §6.1, ST 2110-20).
    ColorSampling, "a sampling of RFC 4175 or ST 2110-20, such as YCbCr-4:2:2 or RGB", {
        /// Non-constant luminance YCbCr, both color differences at each pixel.
        YCbCr444 = "YCbCr-4:4:4",
        /// Non-constant luminance YCbCr, color differences at every second pixel.
        YCbCr422 = "YCbCr-4:2:2",
        /// Non-constant luminance YCbCr, color differences at every second pixel of every second line.
        YCbCr420 = "YCbCr-4:2:0",
        /// Non-constant luminance YCbCr, color differences at every fourth pixel; RFC 4175 only.
        YCbCr411 = "YCbCr-4:1:1",
        /// Constant luminance YCbCr.
        ClYCbCr444 = "CLYCbCr-4:4:4",
        /// Constant luminance YCbCr.
        ClYCbCr422 = "CLYCbCr-4:2:2",
        /// Constant luminance YCbCr.
        ClYCbCr420 = "CLYCbCr-4:2:0",
        /// Constant intensity ICtCp.
        ICtCp444 = "ICtCp-4:4:4",
        /// Constant intensity ICtCp.
        ICtCp422 = "ICtCp-4:2:2",
        /// Constant intensity ICtCp.
        ICtCp420 = "ICtCp-4:2:0",
        /// Red, green, blue.
        Rgb = "RGB",
        /// Red, green, blue, alpha; RFC 4175 only.
        Rgba = "RGBA",
        /// Blue, green, red; RFC 4175 only.
        Bgr = "BGR",
        /// Blue, green, red, alpha; RFC 4175 only.
        Bgra = "BGRA",
        /// CIE XYZ.
        Xyz = "XYZ",
        /// A key signal.
        Key = "KEY",
    }
);

words!(
    /// What the colors mean (ST 2110-20; RFC 4175 §6.1 for the older words).
    Colorimetry, "a colorimetry of RFC 4175 or ST 2110-20, such as BT709", {
        /// ITU-R BT.601.
        Bt601 = "BT601",
        /// ITU-R BT.709.
        Bt709 = "BT709",
        /// ITU-R BT.2020.
        Bt2020 = "BT2020",
        /// ITU-R BT.2100.
        Bt2100 = "BT2100",
        /// SMPTE ST 2065-1 (ACES).
        St2065Part1 = "ST2065-1",
        /// SMPTE ST 2065-3 (ADX).
        St2065Part3 = "ST2065-3",
        /// ISO 11664-1 XYZ.
        Xyz = "XYZ",
        /// Of an alpha or key signal.
        Alpha = "ALPHA",
        /// SMPTE 240M; RFC 4175 only.
        Smpte240m = "SMPTE240M",
        /// Told by other means, or not at all.
        Unspecified = "UNSPECIFIED",
    }
);

words!(
    /// How light becomes numbers: `TCS` (ST 2110-20). The default is SDR.
    TransferCharacteristics, "a TCS of ST 2110-20, such as SDR, PQ or HLG", {
        /// Standard dynamic range.
        Sdr = "SDR",
        /// Perceptual quantization of BT.2100.
        Pq = "PQ",
        /// Hybrid log-gamma of BT.2100.
        Hlg = "HLG",
        /// Linear floating point.
        Linear = "LINEAR",
        /// Linear of BT.2100 for PQ.
        Bt2100LinPq = "BT2100LINPQ",
        /// Linear of BT.2100 for HLG.
        Bt2100LinHlg = "BT2100LINHLG",
        /// SMPTE ST 2065-1.
        St2065Part1 = "ST2065-1",
        /// SMPTE ST 428-1, digital cinema.
        St428Part1 = "ST428-1",
        /// Film density.
        Density = "DENSITY",
        /// SMPTE ST 2115 camera log S3.
        St2115LogS3 = "ST2115LOGS3",
        /// Told by other means.
        Unspecified = "UNSPECIFIED",
    }
);

words!(
    /// Which codes carry the signal: `RANGE` (ST 2110-20). The default is narrow.
    QuantizationRange, "NARROW, FULLPROTECT or FULL", {
        /// Head- and footroom as in BT.709.
        Narrow = "NARROW",
        /// All codes but those that SDI reserves.
        FullProtect = "FULLPROTECT",
        /// All codes.
        Full = "FULL",
    }
);

words!(
    /// How lines are cut into packets: `PM` (ST 2110-20).
    PackingMode, "2110GPM or 2110BPM", {
        /// Pieces of any length.
        General = "2110GPM",
        /// Blocks of 180 octets, so that sizes of packets are the same for all.
        Block = "2110BPM",
    }
);

impl Colorimetry {
    /// The word of a description by RFC 4175, whose words name the editions of 2006.
    pub(super) const fn older_word(self) -> &'static str {
        match self {
            Colorimetry::Bt601 => "BT601-5",
            Colorimetry::Bt709 => "BT709-2",
            other => other.word(),
        }
    }

    pub(super) fn from_any_word(key: &str, word: &str) -> Result<Colorimetry, SdpFault> {
        let older = Colorimetry::ALL.iter().find(|value| value.older_word() == word);
        older.copied().map_or_else(|| Colorimetry::from_word(key, word), Ok)
    }
}

/// Bits of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleDepth {
    /// 8, 10, 12 or 16 bits.
    Bits(u8),
    /// Floating point of 16 bits: `16f`.
    Float16,
}

impl SampleDepth {
    pub(super) fn from_text(key: &str, text: &str) -> Result<SampleDepth, SdpFault> {
        match text {
            "16f" => Ok(SampleDepth::Float16),
            "8" => Ok(SampleDepth::Bits(8)),
            "10" => Ok(SampleDepth::Bits(10)),
            "12" => Ok(SampleDepth::Bits(12)),
            "16" => Ok(SampleDepth::Bits(16)),
            _ => Err(SdpFault::invalid(key, text, "8, 10, 12, 16 or 16f")),
        }
    }
}

impl std::fmt::Display for SampleDepth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SampleDepth::Bits(bits) => write!(f, "{bits}"),
            SampleDepth::Float16 => f.write_str("16f"),
        }
    }
}
