//! The few entities of Cyclone's C interface that the measurements need, behind owning types.

use std::ffi::{CString, c_void};
use std::os::raw::c_char;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use cyclors::{
    dds_durability_kind_DDS_DURABILITY_TRANSIENT_LOCAL as TRANSIENT_LOCAL, dds_entity_t,
    dds_history_kind_DDS_HISTORY_KEEP_ALL as KEEP_ALL, dds_history_kind_DDS_HISTORY_KEEP_LAST as KEEP_LAST,
    dds_reliability_kind_DDS_RELIABILITY_BEST_EFFORT as BEST_EFFORT,
    dds_reliability_kind_DDS_RELIABILITY_RELIABLE as RELIABLE,
};
use peer_protocol::{
    Fault, Keep, Middleware, OctetArrival, OctetSample, PeerProfile, PeerSetup, ProcessEnd, SampleChannel,
    SampleReader, SampleSink, SampleWriter, TYPE_NAME, Wait, WriteError,
};

use crate::configuration;

/// What goes over the wire: a number and bytes, as the C structure that Cyclone's instructions describe.
#[repr(C)]
struct Sample {
    number: u64,
    maximum: u32,
    length: u32,
    buffer: *mut u8,
    release: bool,
}

impl Sample {
    /// A sample that borrows `bytes`, to be read only; it must not outlive them.
    fn borrowing(number: u64, bytes: &[u8]) -> Sample {
        let length = u32::try_from(bytes.len()).expect("a sample is shorter than 4 GiB");
        Sample { number, maximum: length, length, buffer: bytes.as_ptr().cast_mut(), release: false }
    }

    fn bytes(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: Cyclone, or `borrowing`, keeps `length` bytes at `buffer` for as long as the sample lives.
        unsafe { std::slice::from_raw_parts(self.buffer, self.length as usize) }
    }
}

/// `final struct { uint64 number; sequence<octet> bytes; }` in Cyclone's instructions (dds_opcodes.h).
static INSTRUCTIONS: [u32; 5] = [ADR | EIGHT_BYTES << 16, 0, ADR | SEQUENCE << 16 | ONE_BYTE << 8, 8, 0];
const ADR: u32 = 1 << 24;
const ONE_BYTE: u32 = 1;
const EIGHT_BYTES: u32 = 4;
const SEQUENCE: u32 = 7;

/// Writers and readers offer and ask for XCDR1 alone.
const XCDR1: u32 = 1 << cyclors::DDS_DATA_REPRESENTATION_XCDR1;

pub struct Participant {
    /// What is deleted at the end: the domain, or the participant of one that is not ours.
    domain: dds_entity_t,
    entity: dds_entity_t,
    profile: PeerProfile,
    wait: Wait,
    octets: usize,
}

impl Participant {
    fn topic(&self, channel: &SampleChannel) -> Result<dds_entity_t, String> {
        let no_bytes = || cyclors::dds_type_meta_ser { data: ptr::null(), sz: 0 };
        let type_name = CString::new(TYPE_NAME).map_err(|error| error.to_string())?;
        let descriptor = cyclors::dds_topic_descriptor_t {
            m_size: size_of::<Sample>() as u32,
            m_align: align_of::<Sample>() as u32,
            m_flagset: 0,
            m_nkeys: 0,
            m_typename: type_name.as_ptr(),
            m_keys: ptr::null(),
            m_nops: 3,
            m_ops: INSTRUCTIONS.as_ptr(),
            m_meta: c"".as_ptr(),
            type_information: no_bytes(),
            type_mapping: no_bytes(),
            restrict_data_representation: XCDR1,
        };
        let name = CString::new(channel.topic.as_str()).map_err(|error| error.to_string())?;
        // SAFETY: the strings live for the call, in which Cyclone copies them; the instructions are static.
        let entity =
            unsafe { cyclors::dds_create_topic(self.entity, &descriptor, name.as_ptr(), ptr::null(), ptr::null()) };
        check("topic", entity)
    }
}

impl Middleware for Participant {
    const NAME: &'static str = "Cyclone DDS";
    const VERSION: &'static str = "11.0.1";
    const DURABLE: bool = true;

    type Setup = PeerSetup;
    type Sample = OctetSample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &PeerSetup, _end: &ProcessEnd) -> Result<Participant, Fault> {
        // With its own variable, Cyclone makes the domain by the file that it names.
        let domain = match std::env::var_os("CYCLONEDDS_URI") {
            Some(_) => None,
            None => {
                let configuration = CString::new(configuration::text(setup)?).expect("the text holds no zero byte");
                // SAFETY: the string is valid for the call, which copies it.
                let domain = unsafe { cyclors::dds_create_domain(setup.domain, configuration.as_ptr()) };
                Some(check("domain", domain)?)
            }
        };
        // SAFETY: null QoS and listener mean the defaults.
        let entity =
            check("participant", unsafe { cyclors::dds_create_participant(setup.domain, ptr::null(), ptr::null()) })?;
        let domain = domain.unwrap_or(entity);
        Ok(Participant { domain, entity, profile: setup.profile, wait: setup.wait, octets: setup.octets() })
    }

    fn scheduled_sample(&self) -> Result<OctetSample, Fault> {
        Ok(OctetSample { number: 0, bytes: vec![0; self.octets] })
    }

    fn writer(&self, channel: &SampleChannel) -> Result<Writer, Fault> {
        let topic = self.topic(channel)?;
        let qos = match Qos::of_file(cyclors::dds_qos_kind_DDS_WRITER_QOS)? {
            Some(qos) => qos,
            None => Qos::new(channel).with_batching(self.profile == PeerProfile::Batch),
        };
        let batch = qos.has_batching();
        // SAFETY: topic and participant are live entities; the QoS is ours, and copied.
        let entity = unsafe { cyclors::dds_create_writer(self.entity, topic, qos.0, ptr::null()) };
        Ok(Writer { entity: check("writer", entity)?, batch })
    }

    fn reader<S: SampleSink<Participant>>(&self, channel: &SampleChannel, sink: S) -> Result<Reader, Fault> {
        let topic = self.topic(channel)?;
        let qos = Qos::of_file(cyclors::dds_qos_kind_DDS_READER_QOS)?.unwrap_or_else(|| Qos::new(channel));
        // SAFETY: topic and participant are live entities; the QoS is copied.
        let entity = unsafe { cyclors::dds_create_reader(self.entity, topic, qos.0, ptr::null()) };
        let entity = check("reader", entity)?;
        if self.wait == Wait::Listener {
            listen(entity, sink);
            return Ok(Reader { entity, waiting: None });
        }
        Ok(Reader { entity, waiting: Some(Waiting::start(self.entity, entity, sink)?) })
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // SAFETY: the handle is ours; deleting it deletes all that is in it.
        unsafe { cyclors::dds_delete(self.domain) };
    }
}

struct Qos(*mut cyclors::dds_qos_t);

impl Qos {
    fn new(channel: &SampleChannel) -> Qos {
        let reliability = if channel.best_effort { BEST_EFFORT } else { RELIABLE };
        let (history, depth) = match channel.keep {
            Keep::All | Keep::AllOf(_) => (KEEP_ALL, 0),
            Keep::Last(depth) => (KEEP_LAST, i32::try_from(depth).unwrap_or(i32::MAX)),
        };
        let samples_max = if let Keep::AllOf(room) = channel.keep { Some(room) } else { channel.samples_max };
        let samples_max = samples_max.and_then(|samples| i32::try_from(samples).ok()).unwrap_or(-1);
        let max_blocking = i64::try_from(channel.max_blocking.as_nanos()).unwrap_or(i64::MAX);
        // SAFETY: the QoS is created here and freed in `drop`.
        unsafe {
            let qos = cyclors::dds_create_qos();
            cyclors::dds_qset_reliability(qos, reliability, max_blocking);
            cyclors::dds_qset_history(qos, history, depth);
            if channel.durable {
                cyclors::dds_qset_durability(qos, TRANSIENT_LOCAL);
            }
            cyclors::dds_qset_resource_limits(qos, samples_max, -1, -1);
            Qos(qos)
        }
    }
}

impl Qos {
    /// The QoS of the profile `Thalweg::Measured` in the file that `CYCLONEDDS_QOS_FILE` names; `None` without that variable.
    fn of_file(kind: cyclors::dds_qos_kind_t) -> Result<Option<Qos>, String> {
        let Ok(path) = std::env::var("CYCLONEDDS_QOS_FILE") else { return Ok(None) };
        let path = CString::new(path).map_err(|error| error.to_string())?;
        let (mut provider, mut found) = (ptr::null_mut(), ptr::null());
        // SAFETY: strings and pointers live for the calls; what is found lives as long as the provider and is copied before its end.
        unsafe {
            check("QoS file", cyclors::dds_create_qos_provider(path.as_ptr(), &mut provider))?;
            let got = cyclors::dds_qos_provider_get_qos(provider, kind, c"Thalweg::Measured".as_ptr(), &mut found);
            let qos = check("profile of the QoS file", got).map(|_| {
                let qos = Qos(cyclors::dds_create_qos());
                cyclors::dds_copy_qos(qos.0, found);
                qos
            });
            cyclors::dds_delete_qos_provider(provider);
            qos.map(Some)
        }
    }

    fn with_batching(self, batch: bool) -> Qos {
        // SAFETY: the QoS is ours.
        unsafe { cyclors::dds_qset_writer_batching(self.0, batch) };
        self
    }

    fn has_batching(&self) -> bool {
        let mut batch = false;
        // SAFETY: the QoS is ours, and the value is filled by the call.
        unsafe { cyclors::dds_qget_writer_batching(self.0, &mut batch) && batch }
    }
}

impl Drop for Qos {
    fn drop(&mut self) {
        // SAFETY: created by `new`, freed once.
        unsafe { cyclors::dds_delete_qos(self.0) };
    }
}

pub struct Writer {
    entity: dds_entity_t,
    batch: bool,
}

impl Writer {
    fn put(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let sample = Sample::borrowing(number, bytes);
        // SAFETY: the sample has the layout that the topic's descriptor names, and Cyclone only reads it.
        let code = unsafe { cyclors::dds_write(self.entity, ptr::from_ref(&sample).cast::<c_void>()) };
        if code == TIMEOUT {
            return Err(WriteError::no_room());
        }
        check("write", code).map(drop).map_err(WriteError::Failed)
    }
}

impl SampleWriter<Participant> for Writer {
    fn write(&mut self, sample: &OctetSample) -> Result<(), WriteError> {
        self.put(sample.number, &sample.bytes)
    }

    fn send_back(&mut self, arrival: OctetArrival<'_>) -> Result<(), WriteError> {
        self.put(arrival.number, arrival.bytes)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if !self.batch {
            return Ok(());
        }
        // SAFETY: a plain call on a live entity.
        check("flush", unsafe { cyclors::dds_write_flush(self.entity) }).map(drop).map_err(Fault::Here)
    }

    fn matched(&self) -> usize {
        // SAFETY: an all-zero status is valid and is filled by the call.
        unsafe {
            let mut status: cyclors::dds_publication_matched_status_t = std::mem::zeroed();
            cyclors::dds_get_publication_matched_status(self.entity, &mut status);
            status.current_count as usize
        }
    }

    fn wait_for_acknowledgements(&mut self, patience: Duration) -> Result<bool, Fault> {
        // SAFETY: a plain call on a live entity.
        Ok(unsafe { cyclors::dds_wait_for_acks(self.entity, patience.as_nanos() as i64) == 0 })
    }
}

/// Hands each sample that is there to the sink, on loan from Cyclone.
fn take(reader: dds_entity_t, sink: &mut impl SampleSink<Participant>) {
    const BATCH: usize = 100;
    let mut samples = [ptr::null_mut::<c_void>(); BATCH];
    loop {
        // SAFETY: null sample pointers ask for loans; the information is plain old data that the call fills.
        let (count, information) = unsafe {
            let mut information: [cyclors::dds_sample_info_t; BATCH] = std::mem::zeroed();
            samples[0] = ptr::null_mut();
            let count = cyclors::dds_take(reader, samples.as_mut_ptr(), information.as_mut_ptr(), BATCH, BATCH as u32);
            (count, information)
        };
        let Ok(count) = usize::try_from(count) else { break };
        for (sample, _) in samples[..count].iter().zip(&information).filter(|(_, info)| info.valid_data) {
            // SAFETY: a valid sample on loan has the topic's layout until the loan is returned.
            let sample = unsafe { &*sample.cast::<Sample>() };
            sink.take(OctetArrival { number: sample.number, bytes: sample.bytes() });
        }
        if count > 0 {
            // SAFETY: returns exactly the loans taken above.
            unsafe { cyclors::dds_return_loan(reader, samples.as_mut_ptr(), count as i32) };
        }
        if count < BATCH {
            break;
        }
    }
    sink.taken();
}

/// Supplies the sink in Cyclone's receive thread from now on. The sink lives as long as the process.
fn listen<S: SampleSink<Participant>>(reader: dds_entity_t, sink: S) {
    unsafe extern "C" fn trampoline<S: SampleSink<Participant>>(reader: dds_entity_t, argument: *mut c_void) {
        // SAFETY: the argument is the leaked box below; Cyclone serialises the calls of one reader.
        take(reader, unsafe { &mut *argument.cast::<S>() });
    }
    let argument: *mut S = Box::leak(Box::new(sink));
    // SAFETY: the listener is copied by the reader and the argument is never freed.
    unsafe {
        let listener = cyclors::dds_create_listener(argument.cast());
        cyclors::dds_lset_data_available(listener, Some(trampoline::<S>));
        cyclors::dds_set_listener(reader, listener);
        cyclors::dds_delete_listener(listener);
    }
}

pub struct Reader {
    entity: dds_entity_t,
    waiting: Option<Waiting>,
}

impl SampleReader for Reader {
    fn matched(&self) -> usize {
        // SAFETY: an all-zero status is valid and is filled by the call.
        unsafe {
            let mut status: cyclors::dds_subscription_matched_status_t = std::mem::zeroed();
            cyclors::dds_get_subscription_matched_status(self.entity, &mut status);
            status.current_count as usize
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.over.store(true, Ordering::Relaxed);
            // A panic in the thread has been printed where it happened.
            let _ = waiting.thread.join();
        }
    }
}

/// A thread that is blocked until its reader has data.
struct Waiting {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Waiting {
    fn start(
        participant: dds_entity_t,
        reader: dds_entity_t,
        mut sink: impl SampleSink<Participant>,
    ) -> Result<Waiting, String> {
        const DATA_AVAILABLE: u32 = 1 << cyclors::dds_status_id_DDS_DATA_AVAILABLE_STATUS_ID;
        const LOOK_UP: i64 = 100_000_000;
        // SAFETY: plain calls on live entities.
        let wait_set = unsafe {
            let entity = check("wait set", cyclors::dds_create_waitset(participant))?;
            check("status mask", cyclors::dds_set_status_mask(reader, DATA_AVAILABLE))?;
            check("attach", cyclors::dds_waitset_attach(entity, reader, 0))?;
            entity
        };
        let over = Arc::new(AtomicBool::new(false));
        let in_thread = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !in_thread.load(Ordering::Relaxed) {
                // SAFETY: no attachments are asked for.
                if unsafe { cyclors::dds_waitset_wait(wait_set, ptr::null_mut(), 0, LOOK_UP) } > 0 {
                    take(reader, &mut sink);
                }
            }
        });
        Ok(Waiting { over, thread })
    }
}

/// `DDS_RETCODE_TIMEOUT`.
const TIMEOUT: i32 = -10;

fn check(what: &str, code: i32) -> Result<dds_entity_t, String> {
    if code >= 0 {
        return Ok(code);
    }
    // SAFETY: Cyclone returns a static string.
    let reason = unsafe { std::ffi::CStr::from_ptr(cyclors::dds_strretcode(code) as *const c_char) };
    Err(format!("{what}: {}", reason.to_string_lossy()))
}
