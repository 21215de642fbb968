//! `thalweg topic pub`: writes samples of any type.

use std::time::{Duration, Instant};

use clap::Args;
use thalweg::Type;
use thalweg::cdr::Representation;
use thalweg::types::Keyed;
use thalweg_types::document::Document;
use thalweg_types::{Types, codec};

use super::SourceOptions;
use super::find::{Side, find, sample_type, spellings, type_of, type_of_files};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, remark};
use crate::qos_options::QosOptions;

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    r#"thalweg topic pub Square {"color":"RED","x":1,"y":2,"shapesize":30} --type ShapeType --count 1"#
))]
/// Writes samples that are given as JSON. Without --type, the topic must have a writer or reader already, whose type is taken.
pub struct PubOptions {
    /// Name of the topic, such as Square or /cmd_vel.
    pub topic: String,

    /// The sample, as `thalweg topic echo --json` prints it.
    pub sample: String,

    /// Name of the type, with modules, such as geometry_msgs::msg::dds_::Twist_ (default: that of the topic).
    #[arg(long = "type", value_name = "NAME")]
    pub type_name: Option<String>,

    /// Write N samples, and wait until all readers have them (default: go on until Ctrl-C).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Write HZ samples a second (default: 1).
    #[arg(long, value_name = "HZ", default_value = "1", hide_default_value = true)]
    pub rate: f64,

    /// Policies of the writer.
    #[arg(long = "qos", value_name = "KEY=VALUE", help = crate::qos_options::help("writer"))]
    pub qos: Vec<String>,

    #[command(flatten)]
    /// Where types come from.
    pub source: SourceOptions,
}

/// Writes samples.
///
/// # Errors
/// The type is not found, the sample does not fit it, or a write fails.
pub fn run(options: &PubOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if !(options.rate.is_finite() && options.rate > 0.0) {
        return Err(Failure::Usage("--rate must be more than 0".to_owned()));
    }
    let qos = QosOptions::parse(&options.qos).map_err(Failure::Usage)?.writer();
    let sample = Document::from_json(options.sample.as_bytes())
        .map_err(|error| Failure::Usage(format!("the sample is {error}")))?;
    let participant = options.source.member.participant()?;
    let (name, type_name, of) = match &options.type_name {
        Some(type_name) => (wire_name(&options.topic), type_name.clone(), named(type_name, options)?),
        None => {
            let found = find(&participant, &options.topic, Side::Readers, options.source.patience, interrupt)?;
            let (of, origin) = type_of(&participant, &found, &options.source)?;
            remark(format_args!("{} of {}, from {origin}", found.type_name, found.name));
            (found.name, found.type_name, of)
        }
    };
    let sampled = sample_type(&of)?;
    let refused = |error: thalweg::cdr::EncodeError| Failure::Usage(format!("the sample is no {type_name}: {error}"));
    let representation = match qos.data_representation.first() {
        Some(thalweg::qos::Representation::Xcdr2) => Representation::Xcdr2,
        _ => Representation::Xcdr1,
    };
    let payload = codec::encode(sampled, &sample, representation).map_err(refused)?;
    let keyed = if sampled.is_keyed() { Keyed::Yes } else { Keyed::No };
    let owned = of.clone();
    let key_of: thalweg::KeyOf = std::sync::Arc::new(move |bytes, kind| {
        let of = codec::SampleType::of(&owned)?;
        let decoded = match kind {
            thalweg::PayloadKind::Data => codec::decode(of, bytes),
            thalweg::PayloadKind::Key => codec::decode_key(of, bytes),
        };
        codec::key_hash(of, &decoded.ok()?).ok().map(thalweg::types::KeyHash)
    });
    let key_of = sampled.is_keyed().then_some(key_of);
    let topic = participant.create_raw_topic(&name, &type_name, keyed, key_of);
    let topic = topic.described_as(&of).map_err(Failure::from_cause)?;
    let writer = participant.create_writer(&topic, qos).map_err(Failure::from_cause)?;
    let until = Instant::now() + options.source.patience;
    while writer.matched_readers().is_empty() && Instant::now() < until && !interrupt.came() {
        std::thread::sleep(LOOK_PERIOD);
    }
    let (begun, mut written) = (Instant::now(), 0_u64);
    while options.count.is_none_or(|count| written < count) && !interrupt.came() {
        let due = begun + Duration::from_secs_f64(written as f64 / options.rate);
        let rest = due.saturating_duration_since(Instant::now());
        if !rest.is_zero() {
            std::thread::sleep(rest.min(LOOK_PERIOD));
            continue;
        }
        writer.write_serialized(&payload).map_err(Failure::from_cause)?;
        written += 1;
    }
    writer.wait_for_acknowledgments(options.source.patience).map_err(Failure::from_cause)?;
    remark(format_args!("wrote {written} samples to {name}, for {} readers", writer.matched_readers().len()));
    if options.count.is_some_and(|count| written < count) { Err(Failure::Interrupted) } else { Ok(()) }
}

fn named(type_name: &str, options: &PubOptions) -> Result<Type, Failure> {
    if let Some((of, _)) = type_of_files(type_name, &options.source.files)? {
        return Ok(of);
    }
    let known = Types::default().find_type(type_name).cloned();
    known.ok_or_else(|| {
        Failure::Usage(format!("the type {type_name} is not known; give it by --idl FILE or --share FOLDER"))
    })
}

/// The name on the wire of a topic that nobody has yet.
fn wire_name(given: &str) -> String {
    spellings(given).swap_remove(0)
}

/// Interval at which Ctrl-C and readers are looked for.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
