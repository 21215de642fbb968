//! `thalweg topic hz`, `bw` and `delay`: what can be said of a topic without decoding its samples.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use thalweg::discovery::{ParticipantData, ProcessDescription};
use thalweg::types::{GuidPrefix, Instant, Keyed, Locator};
use thalweg::{DomainParticipant, Raw, Sample, clock};
use thalweg_host::HostFiles;

use super::SourceOptions;
use super::find::{Side, find, type_of};
use super::readers::{ReadingOptions, TopicReaders};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line, remark};

/// What the three commands have in common.
#[derive(Args, Debug)]
pub struct RateOptions {
    /// Name of the topic, such as Square or /scan.
    pub topic: String,

    /// Print a line every SECONDS (default: 1).
    #[arg(long, value_name = "SECONDS", default_value = "1", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub every: Duration,

    /// Exit after N lines (default: go on until Ctrl-C).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Print each line as a JSON object (default: text).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// The domain.
    pub source: SourceOptions,
}

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg topic hz /scan"))]
/// Prints how many samples a second arrive of all writers, and the least, greatest and mean time between two of them. The time begins
/// with the first sample; what writers have kept does not count.
pub struct HzOptions {
    #[command(flatten)]
    /// The topic and the lines.
    rate: RateOptions,
}

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg topic bw /camera/image_raw"))]
/// Prints how many bytes of samples a second arrive of all writers, and the sizes of samples. The time begins with the first sample; what
/// writers have kept does not count.
pub struct BwOptions {
    #[command(flatten)]
    /// The topic and the lines.
    rate: RateOptions,
}

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg topic delay /camera/image_raw --json"))]
/// Prints the time from a writer's time stamp to the arrival of the sample. On one host, which participants name, both have one clock.
/// Between two hosts it is as wrong as their clocks differ, which this command cannot tell: run chronyc tracking, or pmc for PTP, on
/// both. What writers have kept does not count.
pub struct DelayOptions {
    #[command(flatten)]
    /// The topic and the lines.
    rate: RateOptions,
}

/// One line of `hz`. Times are in seconds.
#[derive(Serialize)]
struct Hz {
    samples: usize,
    /// Samples that arrived and were replaced before they were taken; the rate leaves them out.
    overwritten: u64,
    rate_hz: f64,
    period_min_s: Option<f64>,
    period_max_s: Option<f64>,
    period_mean_s: Option<f64>,
}

#[derive(Serialize)]
struct Bw {
    samples: usize,
    /// As in [`Hz`]; the bytes leave them out.
    overwritten: u64,
    bytes_per_s: f64,
    sample_bytes_min: Option<usize>,
    sample_bytes_max: Option<usize>,
}

#[derive(Serialize)]
struct Delay {
    samples: usize,
    /// As in [`Hz`]; their delays are not known.
    overwritten: u64,
    /// Samples without a time stamp.
    unstamped: usize,
    min_s: Option<f64>,
    mean_s: Option<f64>,
    max_s: Option<f64>,
    /// How far the clocks of writers and of this host differ at most; null where that is not known.
    clock_error_s: Option<f64>,
    /// The same in words.
    clock: &'static str,
}

/// What is known of the difference between the clocks of writers and of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockDifference {
    /// No sample has come.
    NoWriter,
    /// All writers announce the name and addresses of this host.
    OneClock,
    /// Some do not.
    Unknown,
}

impl ClockDifference {
    /// The difference to writers on these hosts, as they are announced; a host without a name is none that is known.
    fn between<'a>(own: Option<&str>, hosts: impl IntoIterator<Item = Option<&'a str>>) -> ClockDifference {
        let is_own = |host: Option<&str>| host.is_some() && host == own;
        hosts.into_iter().fold(ClockDifference::NoWriter, |known, host| match known {
            ClockDifference::Unknown => known,
            _ if is_own(host) => ClockDifference::OneClock,
            _ => ClockDifference::Unknown,
        })
    }

    fn error_s(self) -> Option<f64> {
        (self == ClockDifference::OneClock).then_some(0.0)
    }

    /// A sentence without its end.
    fn words(self) -> &'static str {
        match self {
            ClockDifference::NoWriter => "no sample has come",
            ClockDifference::OneClock => {
                "all writers announce the name and addresses of this host: both ends have one clock, and the delay no error of it"
            }
            ClockDifference::Unknown => {
                "writers are on other hosts, or do not name theirs: the delay includes the unknown difference of the clocks, which \
                 chronyc tracking, or pmc for PTP, tells on both hosts"
            }
        }
    }

    /// For the end of a line.
    fn short(self) -> &'static str {
        match self {
            ClockDifference::NoWriter => "",
            ClockDifference::OneClock => "  clock error 0",
            ClockDifference::Unknown => "  clock error unknown",
        }
    }
}

/// A sample that arrived, without its content.
#[derive(Debug, PartialEq)]
struct Arrival {
    at: Instant,
    bytes: usize,
    /// Seconds from the writer's stamp to the arrival.
    delay_s: Option<f64>,
    /// The writer's participant.
    writer: GuidPrefix,
}

/// What arrived between two lines.
struct Period {
    /// The sample with which the first period begins: it is in none.
    opening: Option<Arrival>,
    /// In the order in which they came.
    arrivals: Vec<Arrival>,
    /// Samples that came and were replaced before they were taken: they are in none of the figures.
    overwritten: u64,
    seconds: f64,
}

impl Period {
    /// Whether it lasted as long as it was to.
    fn is_whole(&self, every: Duration) -> bool {
        self.seconds >= every.as_secs_f64()
    }
}

/// Prints rates.
///
/// # Errors
/// The topic is not found, or output cannot be written.
pub fn hz(options: &HzOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut last = None;
    follow(&options.rate, interrupt, |_, Period { opening, arrivals, overwritten, seconds }| {
        last = opening.as_ref().map(|opening| opening.at).or(last);
        let times = last.into_iter().chain(arrivals.iter().map(|arrival| arrival.at)).collect::<Vec<_>>();
        last = times.last().copied();
        let periods: Vec<f64> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
        let (min, mean, max) = range(&periods);
        let found = Hz {
            samples: arrivals.len(),
            overwritten: *overwritten,
            rate_hz: arrivals.len() as f64 / *seconds,
            period_min_s: min,
            period_max_s: max,
            period_mean_s: mean,
        };
        let period = milliseconds(min, mean, max);
        let text = format!("{:.2} Hz  period {period}{}", found.rate_hz, replaced(*overwritten));
        (serde_json::to_string(&found), text)
    })
}

/// Prints bytes a second.
///
/// # Errors
/// As [`hz`].
pub fn bw(options: &BwOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    follow(&options.rate, interrupt, |_, Period { arrivals, overwritten, seconds, .. }| {
        let sizes = || arrivals.iter().map(|arrival| arrival.bytes);
        let found = Bw {
            samples: arrivals.len(),
            overwritten: *overwritten,
            bytes_per_s: sizes().sum::<usize>() as f64 / *seconds,
            sample_bytes_min: sizes().min(),
            sample_bytes_max: sizes().max(),
        };
        let (min, max) = (found.sample_bytes_min.unwrap_or(0), found.sample_bytes_max.unwrap_or(0));
        let replaced = replaced(*overwritten);
        let text = format!("{:.0} B/s  {} samples of {min} to {max} B{replaced}", found.bytes_per_s, found.samples);
        (serde_json::to_string(&found), text)
    })
}

/// Prints delays.
///
/// # Errors
/// As [`hz`].
pub fn delay(options: &DelayOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let own_host = HostFiles::here().setting("kernel.hostname");
    let mut told = ClockDifference::NoWriter;
    follow(&options.rate, interrupt, |participant, Period { opening, arrivals, overwritten, .. }| {
        // A delay belongs to its sample, whenever the period began.
        let all = || opening.iter().chain(arrivals);
        let hosts = hosts_of(participant, own_host.as_deref());
        let host_of = |arrival: &Arrival| hosts.get(&arrival.writer).map(String::as_str);
        let clock = ClockDifference::between(own_host.as_deref(), all().map(host_of));
        if clock != told && clock != ClockDifference::NoWriter {
            remark(clock.words());
            told = clock;
        }
        let delays: Vec<Option<f64>> = all().map(|arrival| arrival.delay_s).collect();
        let known: Vec<f64> = delays.iter().copied().flatten().collect();
        let (min, mean, max) = range(&known);
        let (samples, unstamped) = (delays.len(), delays.len() - known.len());
        let (clock_error_s, words) = (clock.error_s(), clock.words());
        let found = Delay {
            samples,
            overwritten: *overwritten,
            unstamped,
            min_s: min,
            mean_s: mean,
            max_s: max,
            clock_error_s,
            clock: words,
        };
        let (times, replaced) = (milliseconds(min, mean, max), replaced(*overwritten));
        let text = format!("{samples} samples  delay {times}{}{replaced}", clock.short());
        (serde_json::to_string(&found), text)
    })
}

/// The hosts that participants announce; none of one with the name of this host whose addresses are not all this host's, since names are
/// often those of an image that several machines have.
fn hosts_of(participant: &DomainParticipant, own: Option<&str>) -> BTreeMap<GuidPrefix, String> {
    let is_believed = |host: &str, data: &ParticipantData| Some(host) != own || is_here(&data.locators.default_unicast);
    let known = participant.discovered_participants().into_iter();
    let host_of = |data: ParticipantData| {
        let host = ProcessDescription::of(&data).host.filter(|host| is_believed(host, &data))?;
        Some((data.guid_prefix, host))
    };
    known.filter_map(host_of).collect()
}

/// Whether all these addresses are of this host, as the system says that lets a socket have them.
fn is_here(locators: &[Locator]) -> bool {
    let mut addresses = locators.iter().filter_map(Locator::socket_address).map(|address| address.ip()).peekable();
    addresses.peek().is_some() && addresses.all(|address| UdpSocket::bind((address, 0)).is_ok())
}

/// Calls `line` for what arrived in each period, and prints what it gives as JSON or as text.
fn follow(
    options: &RateOptions,
    interrupt: &Interrupt,
    mut line: impl FnMut(&DomainParticipant, &Period) -> (serde_json::Result<String>, String),
) -> Result<(), Failure> {
    if options.every.is_zero() {
        return Err(Failure::Usage("--every must be longer than nothing".to_owned()));
    }
    let participant = options.source.member.participant()?;
    let found = find(&participant, &options.topic, Side::Writers, options.source.patience, interrupt)?;
    // Nothing is decoded but the keys of instances that have owners.
    let (files, patience) = (&options.source.files, options.source.patience);
    let ask = || type_of(&participant, &found, files, patience, interrupt);
    let of = (found.is_exclusive && found.keyed == Keyed::Yes).then(ask).and_then(Result::ok).map(|(of, _)| of);
    // What writers have kept came at no rate.
    let reading = ReadingOptions { takes_history: false, depth: DEPTH, may_gather: false };
    let mut readers = TopicReaders::new(&participant, &found.topic(&participant), of.as_ref(), reading)?;
    let mut periods = Periods::default();
    let mut printed = 0;
    while !interrupt.came() {
        let period = periods.next(&mut readers, options.every, interrupt);
        if !period.is_whole(options.every) {
            break; // Ctrl-C came within it, and the line of a part would be taken for that of a whole one.
        }
        let (json, text) = line(&participant, &period);
        print_line(if options.json { json.map_err(Failure::from_cause)? } else { text })?;
        printed += 1;
        if options.count == Some(printed) {
            return Ok(());
        }
    }
    if options.count.is_none() { Ok(()) } else { Err(Failure::Interrupted) }
}

/// Periods one after the other. The first begins with a sample: before one comes, nobody knows since when writers have matched.
#[derive(Default)]
struct Periods {
    begun: Option<Instant>,
    /// Samples that were replaced before this period.
    overwritten_before: u64,
}

impl Periods {
    /// What arrives in the next period. Without a first sample it is over all the same, and has nothing.
    fn next(&mut self, readers: &mut TopicReaders<'_>, every: Duration, interrupt: &Interrupt) -> Period {
        let asked = clock::now();
        let mut arrivals = Vec::new();
        let mut opening = None;
        if self.begun.is_none() {
            gather(readers, asked + every, interrupt, &mut arrivals, |arrivals| !arrivals.is_empty());
            opening = self.begin(&mut arrivals);
        }
        if let Some(begun) = self.begun {
            gather(readers, begun + every, interrupt, &mut arrivals, |_| false);
        }
        let end = clock::now();
        let seconds = end.since(self.begun.unwrap_or(asked)).as_secs_f64();
        self.begun = self.begun.map(|_| end);
        let all_overwritten = readers.overwritten();
        let overwritten = all_overwritten.saturating_sub(self.overwritten_before);
        self.overwritten_before = all_overwritten;
        Period { opening, arrivals, overwritten, seconds }
    }

    /// The first period begins with the first of these, which is taken away.
    fn begin(&mut self, arrivals: &mut Vec<Arrival>) -> Option<Arrival> {
        let opening = (!arrivals.is_empty()).then(|| arrivals.remove(0));
        self.begun = opening.as_ref().map(|opening| opening.at);
        opening
    }
}

/// Adds what arrives until `end`, or until it is enough, in the order in which it came.
fn gather(
    readers: &mut TopicReaders<'_>,
    end: Instant,
    interrupt: &Interrupt,
    arrivals: &mut Vec<Arrival>,
    is_enough: impl Fn(&[Arrival]) -> bool,
) {
    loop {
        readers.follow();
        arrivals.extend(arrivals_of(&readers.take(usize::MAX).samples));
        let rest = end.since(clock::now());
        if rest.is_zero() || interrupt.came() || is_enough(arrivals) {
            break;
        }
        // Samples know when they arrived: nobody has to be woken for each.
        std::thread::sleep(rest.min(LOOK_PERIOD));
    }
    // Each reader has its own order.
    arrivals.sort_by_key(|arrival| arrival.at);
}

fn arrivals_of(samples: &[Sample<Raw>]) -> Vec<Arrival> {
    // The wall clock at a monotonic time: how long ago a sample arrived is known by the latter.
    let (now, wall) = (clock::now(), clock::wall_clock());
    let arrival = |sample: &Sample<Raw>| {
        let info = sample.info();
        let age_s = now.since(info.received).as_secs_f64();
        let delay_s = info.source_timestamp.map(|stamp| seconds(wall) - seconds(stamp) - age_s);
        Arrival { at: info.received, bytes: sample.bytes().len(), delay_s, writer: info.writer.prefix }
    };
    samples.iter().filter(|sample| sample.is_valid()).map(arrival).collect()
}

fn seconds(stamp: thalweg::types::Timestamp) -> f64 {
    stamp.to_unix().as_secs_f64()
}

/// Least, mean and greatest.
fn range(values: &[f64]) -> (Option<f64>, Option<f64>, Option<f64>) {
    let least = values.iter().copied().reduce(f64::min);
    let greatest = values.iter().copied().reduce(f64::max);
    let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    (least, mean, greatest)
}

fn milliseconds(min: Option<f64>, mean: Option<f64>, max: Option<f64>) -> String {
    match (min, mean, max) {
        (Some(min), Some(mean), Some(max)) => {
            format!("{:.3} to {:.3} ms, mean {:.3} ms", min * 1e3, max * 1e3, mean * 1e3)
        }
        _ => "unknown: too few samples".to_owned(),
    }
}

/// For the end of a line: its figures are of the samples that were taken.
fn replaced(overwritten: u64) -> String {
    if overwritten == 0 { String::new() } else { format!("  without {overwritten} samples that were replaced unseen") }
}

/// Samples that wait between two looks.
const DEPTH: u32 = 10_000;
/// Interval at which samples are taken, of which half a million a second find room.
const LOOK_PERIOD: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_period_begins_with_a_sample_that_is_not_in_it() {
        let arrival = |seconds: u64| {
            let at = Instant::from_nanos(seconds * 1_000_000_000);
            Arrival { at, bytes: 8, delay_s: None, writer: GuidPrefix::default() }
        };
        let mut periods = Periods::default();
        assert!(periods.begin(&mut Vec::new()).is_none() && periods.begun.is_none(), "nobody has matched so far");
        let mut arrivals = vec![arrival(70), arrival(71)];
        assert_eq!(periods.begin(&mut arrivals), Some(arrival(70)));
        assert_eq!((arrivals, periods.begun), (vec![arrival(71)], Some(arrival(70).at)));
    }

    #[test]
    fn addresses_of_this_host_are_those_that_a_socket_may_have() {
        let locator = |address: &str| Locator::from(address.parse::<std::net::SocketAddr>().unwrap());
        assert!(is_here(&[locator("127.0.0.1:7411"), locator("127.0.0.2:7411")]));
        // TEST-NET-1 (RFC 5737) is nobody's.
        assert!(!is_here(&[locator("127.0.0.1:7411"), locator("192.0.2.1:7411")]) && !is_here(&[]));
    }

    #[test]
    fn one_clock_is_told_where_all_writers_announce_this_host_alone() {
        let between = |hosts: &[Option<&'static str>]| ClockDifference::between(Some("robot"), hosts.iter().copied());
        assert_eq!(between(&[]), ClockDifference::NoWriter);
        assert_eq!(between(&[Some("robot"), Some("robot")]), ClockDifference::OneClock);
        for hosts in [[Some("robot"), Some("desk")], [Some("desk"), Some("robot")], [None, Some("robot")]] {
            assert_eq!(between(&hosts), ClockDifference::Unknown, "{hosts:?}");
        }
        let nameless = ClockDifference::between(None, [None]);
        assert_eq!((nameless, nameless.error_s()), (ClockDifference::Unknown, None));
        assert_eq!(ClockDifference::OneClock.error_s(), Some(0.0));
    }

    #[test]
    fn a_period_that_ctrl_c_ends_is_not_whole() {
        let every = Duration::from_millis(1_100);
        let is_whole = |seconds: f64| {
            let period = Period { opening: None, arrivals: Vec::new(), overwritten: 0, seconds };
            period.is_whole(every)
        };
        assert!(!is_whole(0.0) && !is_whole(1.099) && is_whole(every.as_secs_f64()) && is_whole(1.2));
    }
}
