//! The codec of types that are known at run time beside the derived one: the same samples, read and written by both in turns.
//!
//!     cargo xtask count codec

use std::hint::black_box;
use std::time::{Duration, Instant};

use thalweg_cdr::{Representation, Topic};
use thalweg_derive::Topic;
use thalweg_types::codec::{self, SampleType};

#[derive(Topic, Clone, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct Header {
    seconds: i32,
    nanoseconds: u32,
    frame_id: String,
}

#[derive(Topic, Clone, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct Vector3 {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Topic, Clone, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct Twist {
    linear: Vector3,
    angular: Vector3,
}

#[derive(Topic, Clone, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct Imu {
    header: Header,
    orientation: Vector3,
    w: f64,
    orientation_covariance: [f64; 9],
    angular_velocity: Vector3,
    angular_velocity_covariance: [f64; 9],
    linear_acceleration: Vector3,
    linear_acceleration_covariance: [f64; 9],
}

#[derive(Topic, Clone, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct JointState {
    header: Header,
    name: Vec<String>,
    position: Vec<f64>,
    velocity: Vec<f64>,
    effort: Vec<f64>,
}

#[derive(Topic, Clone, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct LaserScan {
    header: Header,
    angle_min: f32,
    angle_max: f32,
    ranges: Vec<f32>,
    intensities: Vec<f32>,
}

#[derive(Topic, Clone, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct Path {
    header: Header,
    poses: Vec<Twist>,
}

#[derive(Topic, Clone, Default)]
#[topic(crate = "thalweg_cdr", extensibility = "final")]
struct Image {
    header: Header,
    height: u32,
    width: u32,
    encoding: String,
    data: Vec<u8>,
}

fn main() {
    let header = || Header { seconds: 1_700_000_000, nanoseconds: 5, frame_id: "base_link".to_owned() };
    println!("XCDR1; nanoseconds a sample, what was read is dropped; median of {ROUNDS} turns");
    println!(
        "{:<34} {:>8} {:>10} {:>10} {:>6} {:>10} {:>10} {:>6}",
        "", "bytes", "read: by", "derived", "times", "written:", "derived", "times"
    );
    row("twist, 6 doubles", &Twist::default());
    row("IMU, 39 numbers", &Imu { header: header(), ..Imu::default() });
    let names = (0..12).map(|joint| format!("arm_joint_{joint}"));
    let numbers = || vec![0.25; 12];
    row(
        "12 joints with names",
        &JointState {
            header: header(),
            name: names.collect(),
            position: numbers(),
            velocity: numbers(),
            effort: numbers(),
        },
    );
    let ranges = || vec![1.5; 1_080];
    row(
        "laser scan, 2 x 1,080 floats",
        &LaserScan { header: header(), angle_min: -2.0, angle_max: 2.0, ranges: ranges(), intensities: ranges() },
    );
    row("path of 100 twists", &Path { header: header(), poses: vec![Twist::default(); 100] });
    let (height, width) = (480, 640);
    let data = vec![9; 3 * height as usize * width as usize];
    row("image, 640 x 480", &Image { header: header(), height, width, encoding: "rgb8".to_owned(), data });
}

/// What both take for a sample.
fn row<T: Topic>(name: &str, value: &T) {
    let of = T::description().expect("a type that can be described");
    let of = SampleType::of(&of).expect("a structure");
    let mut payload = Vec::new();
    thalweg_cdr::encode(value, Representation::Xcdr1, &mut payload).expect("written");
    let document = codec::decode(of, &payload).expect("read");
    assert_eq!(codec::encode(of, &document, Representation::Xcdr1).expect("written"), payload, "both write the same");

    let [mut read, mut read_derived, mut written, mut written_derived] = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        read.push(nanoseconds(|| drop(black_box(codec::decode(of, black_box(&payload))))));
        read_derived.push(nanoseconds(|| drop(black_box(thalweg_cdr::decode::<T>(black_box(&payload))))));
        written.push(nanoseconds(|| {
            drop(black_box(codec::encode(of, black_box(&document), Representation::Xcdr1)));
        }));
        written_derived.push(nanoseconds(|| {
            let mut out = Vec::with_capacity(thalweg_cdr::encoded_size_hint(value));
            let _ = black_box(thalweg_cdr::encode(black_box(value), Representation::Xcdr1, &mut out));
            drop(black_box(out));
        }));
    }
    let [read, read_derived, written, written_derived] = [read, read_derived, written, written_derived].map(median);
    println!(
        "{name:<34} {:>8} {read:>10.0} {read_derived:>10.0} {:>6.1} {written:>10.0} {written_derived:>10.0} {:>6.1}",
        payload.len(),
        read / read_derived,
        written / written_derived
    );
}

/// The time that a deed takes, from as many as fill a turn.
fn nanoseconds(mut deed: impl FnMut()) -> f64 {
    let (mut count, begun) = (0_u32, Instant::now());
    loop {
        (0..BETWEEN_LOOKS).for_each(|_| deed());
        count += BETWEEN_LOOKS;
        let elapsed = begun.elapsed();
        if elapsed >= TURN {
            return elapsed.as_secs_f64() * 1e9 / f64::from(count);
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const ROUNDS: usize = 21;
const TURN: Duration = Duration::from_millis(5);
const BETWEEN_LOOKS: u32 = 16;
