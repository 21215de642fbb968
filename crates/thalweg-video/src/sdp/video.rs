//! What a session description says of raw video.

use std::fmt::Write;

use super::error::SdpFault;
use super::fmtp::{Parameters, decimal_rate, exact_rate};
use super::tokens::{ColorSampling, Colorimetry, PackingMode, QuantizationRange, SampleDepth, TransferCharacteristics};
use crate::conformance::PacingKind;
use crate::format::{FormatError, FrameRate, PixelFormat, Scan, VideoFormat};

/// The largest UDP datagram of ST 2110-10 without `MAXUDP`, in octets with the UDP header.
const STANDARD_UDP_OCTETS: u16 = 1460;

/// The largest UDP datagram that `MAXUDP` may tell (ST 2110-10), in octets with the UDP header.
pub const EXTENDED_UDP_OCTETS: u16 = 8960;

/// Raw video: the parameters of RFC 4175 §6.1 and, in a studio, those of ST 2110-20.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoDescription {
    /// Color components.
    pub sampling: ColorSampling,
    /// Bits of a component.
    pub depth: SampleDepth,
    /// Pixels of a line, 1 to 32,767.
    pub width: u16,
    /// Lines of a frame, 1 to 32,767; of both fields together for two fields.
    pub height: u16,
    /// Frames a second; none in a description by RFC 4175 that does not tell.
    pub rate: Option<FrameRate>,
    /// The order of lines: `interlace` and `segmented`.
    pub scan: Scan,
    /// What the colors mean; unspecified in a description by RFC 4175 that does not tell.
    pub colorimetry: Colorimetry,
    /// `TCS`; SDR by default.
    pub transfer: TransferCharacteristics,
    /// `RANGE`; narrow by default.
    pub range: QuantizationRange,
    /// `PAR`: width to height of a pixel; 1:1 by default.
    pub pixel_aspect: (u16, u16),
    /// What ST 2110 adds; none in a description by RFC 4175.
    pub studio: Option<StudioParameters>,
}

/// What ST 2110-20 and -21 tell beyond RFC 4175.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudioParameters {
    /// `PM`.
    pub packing: PackingMode,
    /// `SSN`: the edition of the standard, such as `ST2110-20:2017`.
    pub standard: String,
    /// `TP`: how evenly the sender promises to send (ST 2110-21); none when it promises nothing.
    pub pacing: Option<PacingKind>,
    /// `TROFF`: microseconds from the beginning of a frame time to its first packet, where not the default.
    pub offset_micros: Option<u32>,
    /// `CMAX`: the burst that the sender promises not to exceed, in packets.
    pub burst_packets_max: Option<u32>,
    /// `MAXUDP`: the largest UDP datagram in octets with its header. Default 1,460; up to 8,960.
    pub udp_octets_max: u16,
}

impl StudioParameters {
    /// The edition of 2017 with a packing mode and without promises.
    pub fn new(packing: PackingMode) -> StudioParameters {
        StudioParameters {
            packing,
            standard: "ST2110-20:2017".to_owned(),
            pacing: None,
            offset_micros: None,
            burst_packets_max: None,
            udp_octets_max: STANDARD_UDP_OCTETS,
        }
    }
}

impl VideoDescription {
    /// The description of a format by RFC 4175, with the colors of HD television. That RGB has the full range it cannot tell: ST 2110-20
    /// alone has a key for it ([`VideoDescription::with_studio`]).
    pub fn from_format(format: &VideoFormat) -> VideoDescription {
        let sampling = match format.pixels() {
            PixelFormat::Yuv422Bits10 | PixelFormat::Yuv422Bits8 => ColorSampling::YCbCr422,
            PixelFormat::Rgb8 => ColorSampling::Rgb,
        };
        VideoDescription {
            sampling,
            depth: SampleDepth::Bits(format.pixels().depth()),
            width: format.width(),
            height: format.height(),
            rate: Some(format.rate()),
            scan: format.scan(),
            colorimetry: Colorimetry::Bt709,
            transfer: TransferCharacteristics::Sdr,
            range: QuantizationRange::Narrow,
            pixel_aspect: (1, 1),
            studio: None,
        }
    }

    /// The same in the words of ST 2110: with its keys, and the range of this crate's formats, full in RGB and narrow in YCbCr.
    pub fn with_studio(self, studio: StudioParameters) -> VideoDescription {
        let is_rgb = self.sampling == ColorSampling::Rgb;
        let range = if is_rgb { QuantizationRange::Full } else { QuantizationRange::Narrow };
        VideoDescription { range, studio: Some(studio), ..self }
    }

    /// The format, as this crate sends and receives it; `rate` serves where the description tells none.
    ///
    /// # Errors
    /// The sampling and depth are none of this crate's, or the size does not fit them.
    pub fn to_format(&self, rate: FrameRate) -> Result<VideoFormat, FormatError> {
        let depth = match self.depth {
            SampleDepth::Bits(bits) => bits,
            SampleDepth::Float16 => 0,
        };
        let expected = "YCbCr-4:2:2 with 10 or 8 bits, or RGB with 8 bits";
        let pixels = PixelFormat::from_sampling(self.sampling.word(), depth)
            .ok_or(FormatError::Unreadable { what: "sampling and depth", expected })?;
        VideoFormat::new(pixels, (self.width, self.height), self.rate.unwrap_or(rate), self.scan)
    }

    /// Reads format parameters; `framerate` is the attribute of that name.
    pub(super) fn read(parameters: &Parameters<'_>, framerate: Option<&str>) -> Result<VideoDescription, SdpFault> {
        let studio = read_studio(parameters)?;
        let size = |key| {
            let number = parameters.number(key, 1..=32_767, "a number of pixels from 1 to 32767")?;
            number.and_then(|number| u16::try_from(number).ok()).ok_or(SdpFault::Missing { key })
        };
        let (width, height) = (size("width")?, size("height")?);
        let scan = read_scan(parameters)?;
        if scan != Scan::Progressive && !height.is_multiple_of(2) {
            return Err(SdpFault::contradiction("interlace", &format!("height={height}")));
        }
        let colorimetry = match parameters.value("colorimetry")? {
            Some(word) => Colorimetry::from_any_word("colorimetry", word)?,
            None if studio.is_some() => return Err(SdpFault::Missing { key: "colorimetry" }),
            None => Colorimetry::Unspecified,
        };
        let word = |key| parameters.value(key);
        let transfer = word("TCS")?.map(|word| TransferCharacteristics::from_word("TCS", word)).transpose()?;
        let range = word("RANGE")?.map(|word| QuantizationRange::from_word("RANGE", word)).transpose()?;
        Ok(VideoDescription {
            sampling: ColorSampling::from_word("sampling", parameters.required("sampling")?)?,
            depth: SampleDepth::from_text("depth", parameters.required("depth")?)?,
            width,
            height,
            rate: read_rate(parameters, framerate, studio.is_some())?,
            scan,
            colorimetry,
            transfer: transfer.unwrap_or(TransferCharacteristics::Sdr),
            range: range.unwrap_or(QuantizationRange::Narrow),
            pixel_aspect: read_aspect(parameters)?,
            studio,
        })
    }

    /// The format parameters. Defaults are left out where a receiver knows them.
    pub(super) fn parameters(&self) -> String {
        let mut text = format!(
            "sampling={}; width={}; height={}; depth={}",
            self.sampling.word(),
            self.width,
            self.height,
            self.depth
        );
        let mut add = |part: std::fmt::Arguments<'_>| {
            // Writing to a text cannot fail.
            let _ = write!(text, "; {part}");
        };
        match self.rate {
            Some(rate) if rate.denominator() == 1 => add(format_args!("exactframerate={}", rate.numerator())),
            Some(rate) => add(format_args!("exactframerate={}/{}", rate.numerator(), rate.denominator())),
            None => {}
        }
        let is_studio = self.studio.is_some();
        let colorimetry = if is_studio { self.colorimetry.word() } else { self.colorimetry.older_word() };
        add(format_args!("colorimetry={colorimetry}"));
        match self.scan {
            Scan::Progressive => {}
            Scan::Interlaced => add(format_args!("interlace")),
            Scan::SegmentedFrame => add(format_args!("interlace; segmented")),
        }
        if is_studio || self.transfer != TransferCharacteristics::Sdr {
            add(format_args!("TCS={}", self.transfer.word()));
        }
        if self.range != QuantizationRange::Narrow {
            add(format_args!("RANGE={}", self.range.word()));
        }
        if self.pixel_aspect != (1, 1) {
            add(format_args!("PAR={}:{}", self.pixel_aspect.0, self.pixel_aspect.1));
        }
        let Some(studio) = &self.studio else { return text };
        add(format_args!("PM={}; SSN={}", studio.packing.word(), studio.standard));
        if let Some(pacing) = studio.pacing {
            add(format_args!("TP={}", pacing.word()));
        }
        if let Some(micros) = studio.offset_micros {
            add(format_args!("TROFF={micros}"));
        }
        if let Some(packets) = studio.burst_packets_max {
            add(format_args!("CMAX={packets}"));
        }
        if studio.udp_octets_max != STANDARD_UDP_OCTETS {
            add(format_args!("MAXUDP={}", studio.udp_octets_max));
        }
        text
    }
}

/// The keys of ST 2110; one of them makes the others due.
fn read_studio(parameters: &Parameters<'_>) -> Result<Option<StudioParameters>, SdpFault> {
    let has = |key| parameters.value(key).map(|value| value.is_some());
    if !(has("PM")? || has("SSN")? || has("TP")?) {
        return Ok(None);
    }
    let standard = parameters.required("SSN")?;
    if !standard.starts_with("ST2110-20:") {
        return Err(SdpFault::invalid("SSN", standard, "ST2110-20 and its edition, such as ST2110-20:2017"));
    }
    let pacing = match parameters.value("TP")? {
        Some(word) => {
            let expected = "2110TPN, 2110TPNL or 2110TPW";
            Some(PacingKind::from_word(word).ok_or_else(|| SdpFault::invalid("TP", word, expected))?)
        }
        None => None,
    };
    let udp_octets = parameters.number("MAXUDP", 1..=u32::from(EXTENDED_UDP_OCTETS), "octets from 1 to 8960")?;
    Ok(Some(StudioParameters {
        packing: PackingMode::from_word("PM", parameters.required("PM")?)?,
        standard: standard.to_owned(),
        pacing,
        offset_micros: parameters.number("TROFF", 0..=u32::MAX, "microseconds")?,
        burst_packets_max: parameters.number("CMAX", 1..=u32::MAX, "a number of packets")?,
        udp_octets_max: udp_octets.and_then(|octets| octets.try_into().ok()).unwrap_or(STANDARD_UDP_OCTETS),
    }))
}

fn read_scan(parameters: &Parameters<'_>) -> Result<Scan, SdpFault> {
    match (parameters.flag("interlace")?, parameters.flag("segmented")?) {
        (false, false) => Ok(Scan::Progressive),
        (true, false) => Ok(Scan::Interlaced),
        (true, true) => Ok(Scan::SegmentedFrame),
        (false, true) => Err(SdpFault::contradiction("segmented", "no interlace")),
    }
}

fn read_rate(
    parameters: &Parameters<'_>,
    framerate: Option<&str>,
    is_studio: bool,
) -> Result<Option<FrameRate>, SdpFault> {
    match (parameters.value("exactframerate")?, framerate) {
        (Some(exact), _) => exact_rate("exactframerate", exact).map(Some),
        (None, _) if is_studio => Err(SdpFault::Missing { key: "exactframerate" }),
        (None, Some(decimals)) => decimal_rate("framerate", decimals).map(Some),
        (None, None) => Ok(None),
    }
}

fn read_aspect(parameters: &Parameters<'_>) -> Result<(u16, u16), SdpFault> {
    let Some(text) = parameters.value("PAR")? else { return Ok((1, 1)) };
    let sides = text.split_once(':').and_then(|(width, height)| width.parse().ok().zip(height.parse().ok()));
    let sides = sides.filter(|(width, height)| *width > 0 && *height > 0);
    sides.ok_or_else(|| SdpFault::invalid("PAR", text, "width:height, such as 12:11"))
}
