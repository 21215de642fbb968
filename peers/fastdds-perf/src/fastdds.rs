//! Fast DDS through the C interface of `fastdds.cpp`, behind owning types.

use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use peer_protocol::{
    Fault, Keep, Middleware, OctetArrival, OctetSample, PeerDestination, PeerProfile, PeerSetup, ProcessEnd,
    SampleChannel, SampleReader, SampleSink, SampleWriter, TYPE_NAME, Wait, WriteError,
};

/// `FastChannel` in `fastdds.cpp`.
#[repr(C)]
struct FastChannel {
    topic: *const c_char,
    type_name: *const c_char,
    keep_all: bool,
    best_effort: bool,
    durable: bool,
    /// Of KEEP_LAST.
    depth: i32,
    /// Room in a KEEP_ALL history; 0 leaves it to the profile.
    samples_max: i32,
    max_blocking_ms: u32,
}

type OnSample = unsafe extern "C" fn(*mut c_void, u64, *const u8, usize);
type OnTaken = unsafe extern "C" fn(*mut c_void);

unsafe extern "C" {
    fn fast_version() -> *const c_char;
    fn fast_participant(domain: u32, address: *const c_char, tuned: bool, grouped: bool) -> *mut c_void;
    fn fast_participant_delete(participant: *mut c_void);
    fn fast_writer(participant: *mut c_void, channel: *const FastChannel) -> *mut c_void;
    fn fast_write(writer: *mut c_void, number: u64, bytes: *const u8, length: u32) -> i32;
    fn fast_writer_matched(writer: *mut c_void) -> usize;
    fn fast_wait_for_acknowledgements(writer: *mut c_void, milliseconds: u32) -> bool;
    fn fast_reader(
        participant: *mut c_void,
        channel: *const FastChannel,
        on_sample: OnSample,
        on_taken: OnTaken,
        argument: *mut c_void,
        listen: bool,
    ) -> *mut c_void;
    fn fast_wait(reader: *mut c_void, milliseconds: u32);
    fn fast_reader_matched(reader: *mut c_void) -> usize;
    fn fast_reader_silence(reader: *mut c_void);
}

/// An entity of Fast DDS, which locks by itself and lives as long as its participant.
#[derive(Clone, Copy)]
struct Entity(*mut c_void);

// SAFETY: Fast DDS allows every call above from any thread.
unsafe impl Send for Entity {}

impl Entity {
    fn new(what: &str, pointer: *mut c_void) -> Result<Entity, String> {
        if pointer.is_null() { Err(format!("Fast DDS refuses the {what}")) } else { Ok(Entity(pointer)) }
    }
}

pub struct Participant {
    entity: Entity,
    wait: Wait,
    octets: usize,
}

/// Calls `create` with the channel as Fast DDS wants it.
fn with_channel<T>(channel: &SampleChannel, create: impl FnOnce(&FastChannel) -> T) -> Result<T, String> {
    let topic = CString::new(channel.topic.as_str()).map_err(|error| error.to_string())?;
    let type_name = CString::new(TYPE_NAME).map_err(|error| error.to_string())?;
    Ok(create(&FastChannel {
        topic: topic.as_ptr(),
        type_name: type_name.as_ptr(),
        keep_all: !matches!(channel.keep, Keep::Last(_)),
        best_effort: channel.best_effort,
        durable: channel.durable,
        depth: if let Keep::Last(depth) = channel.keep { i32::try_from(depth).unwrap_or(i32::MAX) } else { 1 },
        samples_max: if let Keep::AllOf(room) = channel.keep { i32::try_from(room).unwrap_or(i32::MAX) } else { 0 },
        max_blocking_ms: u32::try_from(channel.max_blocking.as_millis()).unwrap_or(u32::MAX),
    }))
}

impl Middleware for Participant {
    const NAME: &'static str = "Fast DDS";
    const VERSION: &'static str = "3.1.2";
    const DURABLE: bool = true;

    type Setup = PeerSetup;
    type Sample = OctetSample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &PeerSetup, _end: &ProcessEnd) -> Result<Participant, Fault> {
        // SAFETY: the version is a static string.
        let version = unsafe { std::ffi::CStr::from_ptr(fast_version()) }.to_string_lossy();
        if version != Self::VERSION {
            return Err(Fault::Here(format!("this is Fast DDS {version}, not {}", Self::VERSION)));
        }
        let tuned = setup.profile != PeerProfile::Default;
        let address = CString::new(setup.address.to_string()).map_err(|error| error.to_string())?;
        let grouped = setup.destination == Some(PeerDestination::Multicast);
        // SAFETY: the address lives for the call, which copies it.
        let pointer = unsafe { fast_participant(setup.domain, address.as_ptr(), tuned, grouped) };
        let entity = Entity::new("participant", pointer)?;
        Ok(Participant { entity, wait: setup.wait, octets: setup.octets() })
    }

    fn scheduled_sample(&self) -> Result<OctetSample, Fault> {
        Ok(OctetSample { number: 0, bytes: vec![0; self.octets] })
    }

    fn writer(&self, channel: &SampleChannel) -> Result<Writer, Fault> {
        // SAFETY: the participant lives, and the channel's strings live for the call, which copies them.
        let pointer = with_channel(channel, |channel| unsafe { fast_writer(self.entity.0, channel) })?;
        Ok(Writer { entity: Entity::new("writer", pointer)?, max_blocking: channel.max_blocking })
    }

    fn reader<S: SampleSink<Participant>>(&self, channel: &SampleChannel, sink: S) -> Result<Reader, Fault> {
        Ok(Reader::new(self.entity, self.wait, channel, sink)?)
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // SAFETY: ours, deleted once; writers and readers are used no more.
        unsafe { fast_participant_delete(self.entity.0) };
    }
}

/// Fast DDS's return codes.
const OK: i32 = 0;
const OUT_OF_RESOURCES: i32 = 5;
const TIMEOUT: i32 = 10;

pub struct Writer {
    entity: Entity,
    max_blocking: Duration,
}

impl Writer {
    fn put(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let length = u32::try_from(bytes.len()).map_err(|error| error.to_string())?;
        let end = Instant::now() + self.max_blocking;
        loop {
            // SAFETY: a live entity; Fast DDS copies the bytes in the call.
            match unsafe { fast_write(self.entity.0, number, bytes.as_ptr(), length) } {
                OK => return Ok(()),
                // A full history is not always waited for.
                OUT_OF_RESOURCES | TIMEOUT if Instant::now() < end => std::thread::sleep(Duration::from_micros(50)),
                OUT_OF_RESOURCES | TIMEOUT => return Err(WriteError::no_room()),
                code => return Err(WriteError::Failed(format!("Fast DDS's return code {code}"))),
            }
        }
    }
}

impl SampleWriter<Participant> for Writer {
    fn write(&mut self, sample: &OctetSample) -> Result<(), WriteError> {
        self.put(sample.number, &sample.bytes)
    }

    fn send_back(&mut self, arrival: OctetArrival<'_>) -> Result<(), WriteError> {
        self.put(arrival.number, arrival.bytes)
    }

    fn matched(&self) -> usize {
        // SAFETY: a live entity.
        unsafe { fast_writer_matched(self.entity.0) }
    }

    fn wait_for_acknowledgements(&mut self, patience: Duration) -> Result<bool, Fault> {
        // SAFETY: a live entity.
        Ok(unsafe { fast_wait_for_acknowledgements(self.entity.0, patience.as_millis() as u32) })
    }
}

pub struct Reader {
    entity: Entity,
    waiting: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Reader {
    /// The sink lives as long as the process.
    fn new<S: SampleSink<Participant>>(
        participant: Entity,
        wait: Wait,
        channel: &SampleChannel,
        sink: S,
    ) -> Result<Reader, String> {
        unsafe extern "C" fn on_sample<S: SampleSink<Participant>>(
            sink: *mut c_void,
            number: u64,
            bytes: *const u8,
            length: usize,
        ) {
            let bytes = if length == 0 {
                &[]
            } else {
                // SAFETY: Fast DDS keeps `length` bytes for the call.
                unsafe { std::slice::from_raw_parts(bytes, length) }
            };
            // SAFETY: the argument is the leaked box below; one thread at a time calls.
            unsafe { &mut *sink.cast::<S>() }.take(OctetArrival { number, bytes });
        }
        unsafe extern "C" fn on_taken<S: SampleSink<Participant>>(sink: *mut c_void) {
            // SAFETY: as above.
            unsafe { &mut *sink.cast::<S>() }.taken();
        }
        let sink: *mut S = Box::leak(Box::new(sink));
        let listen = wait == Wait::Listener;
        // SAFETY: the participant lives, the sink is never freed, the channel's strings live for the call.
        let pointer = with_channel(channel, |channel| unsafe {
            fast_reader(participant.0, channel, on_sample::<S>, on_taken::<S>, sink.cast(), listen)
        })?;
        let entity = Entity::new("reader", pointer)?;
        Ok(Reader { entity, waiting: (!listen).then(|| start_waiting(entity)) })
    }
}

fn start_waiting(reader: Entity) -> (Arc<AtomicBool>, JoinHandle<()>) {
    const LOOK_UP_MS: u32 = 100;
    let over = Arc::new(AtomicBool::new(false));
    let in_thread = Arc::clone(&over);
    let thread = std::thread::spawn(move || {
        let reader = reader;
        while !in_thread.load(Ordering::Relaxed) {
            // SAFETY: a live entity, and the only thread that takes from it.
            unsafe { fast_wait(reader.0, LOOK_UP_MS) };
        }
    });
    (over, thread)
}

impl SampleReader for Reader {
    fn matched(&self) -> usize {
        // SAFETY: a live entity.
        unsafe { fast_reader_matched(self.entity.0) }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.waiting.take() {
            over.store(true, Ordering::Relaxed);
            // A panic in the thread has been printed where it happened.
            let _ = thread.join();
        }
        // SAFETY: a live entity.
        unsafe { fast_reader_silence(self.entity.0) };
    }
}
