//! The few entities of Cyclone's C interface that the measurements need, behind owning types.

use std::ffi::{CString, c_void};
use std::os::raw::c_char;
use std::ptr;
use std::time::Duration;

use cyclors::{
    dds_entity_t, dds_history_kind_DDS_HISTORY_KEEP_ALL as KEEP_ALL,
    dds_history_kind_DDS_HISTORY_KEEP_LAST as KEEP_LAST,
    dds_reliability_kind_DDS_RELIABILITY_BEST_EFFORT as BEST_EFFORT,
    dds_reliability_kind_DDS_RELIABILITY_RELIABLE as RELIABLE,
};

use crate::Options;

/// What goes over the wire: a number and bytes, as the C structure that Cyclone's instructions describe.
#[repr(C)]
pub struct Sample {
    pub sequence: u64,
    maximum: u32,
    length: u32,
    buffer: *mut u8,
    release: bool,
}

impl Sample {
    /// A sample that borrows `bytes`; it must not outlive them.
    pub fn borrowing(sequence: u64, bytes: &mut [u8]) -> Sample {
        let length = u32::try_from(bytes.len()).expect("a sample is shorter than 4 GiB");
        Sample { sequence, maximum: length, length, buffer: bytes.as_mut_ptr(), release: false }
    }

    pub fn bytes(&self) -> &[u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: Cyclone, or `borrowing`, keeps `length` bytes at `buffer` for as long as the sample lives.
        unsafe { std::slice::from_raw_parts(self.buffer, self.length as usize) }
    }
}

/// `final struct Perf { uint64 sequence; sequence<octet> bytes; }` in Cyclone's instructions (dds_opcodes.h).
static INSTRUCTIONS: [u32; 5] = [ADR | EIGHT_BYTES << 16, 0, ADR | SEQUENCE << 16 | ONE_BYTE << 8, 8, 0];
const ADR: u32 = 1 << 24;
const ONE_BYTE: u32 = 1;
const EIGHT_BYTES: u32 = 4;
const SEQUENCE: u32 = 7;

/// Loopback alone, unicast data, no shared memory (it is not built in). Everything else is Cyclone's default.
const CONFIGURATION: &str = r#"<CycloneDDS><Domain><General><Interfaces><NetworkInterface name="lo" multicast="true"/>
</Interfaces><AllowMulticast>spdp</AllowMulticast></General></Domain></CycloneDDS>"#;

/// Room in a KEEP_ALL history, as in `thalweg perf`.
const SAMPLES_MAX: i32 = 2000;

/// What the history of an endpoint keeps.
#[derive(Clone, Copy)]
pub enum Keep {
    All,
    /// For writers inside a listener: a full KEEP_ALL history would block the thread that frees it.
    Last,
}

pub struct Participant {
    domain: dds_entity_t,
    entity: dds_entity_t,
}

impl Participant {
    pub fn new(domain: u32) -> Result<Participant, String> {
        let configuration = CString::new(CONFIGURATION).expect("the text holds no zero byte");
        // SAFETY: the string is valid for the call, which copies it.
        let domain_entity = check("domain", unsafe { cyclors::dds_create_domain(domain, configuration.as_ptr()) })?;
        // SAFETY: null QoS and listener mean the defaults.
        let entity =
            check("participant", unsafe { cyclors::dds_create_participant(domain, ptr::null(), ptr::null()) })?;
        Ok(Participant { domain: domain_entity, entity })
    }

    fn topic(&self, name: &str) -> Result<dds_entity_t, String> {
        let no_bytes = || cyclors::dds_type_meta_ser { data: ptr::null(), sz: 0 };
        let descriptor = cyclors::dds_topic_descriptor_t {
            m_size: size_of::<Sample>() as u32,
            m_align: align_of::<Sample>() as u32,
            m_flagset: 0,
            m_nkeys: 0,
            m_typename: c"Perf".as_ptr(),
            m_keys: ptr::null(),
            m_nops: 3,
            m_ops: INSTRUCTIONS.as_ptr(),
            m_meta: c"".as_ptr(),
            type_information: no_bytes(),
            type_mapping: no_bytes(),
            restrict_data_representation: 0,
        };
        let name = CString::new(name).map_err(|error| error.to_string())?;
        // SAFETY: the descriptor's strings and instructions are static; Cyclone copies the rest in the call.
        let entity =
            unsafe { cyclors::dds_create_topic(self.entity, &descriptor, name.as_ptr(), ptr::null(), ptr::null()) };
        check("topic", entity)
    }

    pub fn writer(&self, topic: &str, keep: Keep, options: &Options) -> Result<Writer, String> {
        let topic = self.topic(topic)?;
        let qos = Qos::new(keep, options);
        // SAFETY: topic and participant are live entities; the QoS is copied.
        let entity = unsafe { cyclors::dds_create_writer(self.entity, topic, qos.0, ptr::null()) };
        Ok(Writer { entity: check("writer", entity)? })
    }

    pub fn reader(&self, topic: &str, keep: Keep, options: &Options) -> Result<Reader, String> {
        let topic = self.topic(topic)?;
        let qos = Qos::new(keep, options);
        // SAFETY: topic and participant are live entities; the QoS is copied.
        let entity = unsafe { cyclors::dds_create_reader(self.entity, topic, qos.0, ptr::null()) };
        Ok(Reader { entity: check("reader", entity)? })
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        // SAFETY: the handle is ours; deleting the domain deletes all that is in it.
        unsafe { cyclors::dds_delete(self.domain) };
    }
}

struct Qos(*mut cyclors::dds_qos_t);

impl Qos {
    fn new(keep: Keep, options: &Options) -> Qos {
        let reliability = if options.best_effort { BEST_EFFORT } else { RELIABLE };
        let (history, depth) = match keep {
            Keep::All => (KEEP_ALL, 0),
            Keep::Last => (KEEP_LAST, 16),
        };
        // SAFETY: the QoS is created here and freed in `drop`.
        unsafe {
            let qos = cyclors::dds_create_qos();
            cyclors::dds_qset_reliability(qos, reliability, 10_000_000_000);
            cyclors::dds_qset_history(qos, history, depth);
            cyclors::dds_qset_resource_limits(qos, SAMPLES_MAX, -1, -1);
            Qos(qos)
        }
    }
}

impl Drop for Qos {
    fn drop(&mut self) {
        // SAFETY: created by `new`, freed once.
        unsafe { cyclors::dds_delete_qos(self.0) };
    }
}

#[derive(Clone, Copy)]
pub struct Writer {
    entity: dds_entity_t,
}

impl Writer {
    pub fn write(self, sample: &Sample) -> Result<(), String> {
        // SAFETY: the sample has the layout that the topic's descriptor names.
        let code = unsafe { cyclors::dds_write(self.entity, ptr::from_ref(sample).cast::<c_void>()) };
        check("write", code).map(drop)
    }

    pub fn matched(self) -> u32 {
        // SAFETY: an all-zero status is valid and is filled by the call.
        unsafe {
            let mut status: cyclors::dds_publication_matched_status_t = std::mem::zeroed();
            cyclors::dds_get_publication_matched_status(self.entity, &mut status);
            status.current_count
        }
    }

    /// Whether the readers acknowledged everything within the time.
    pub fn wait_for_acknowledgements(self, time: Duration) -> bool {
        // SAFETY: a plain call on a live entity.
        unsafe { cyclors::dds_wait_for_acks(self.entity, time.as_nanos() as i64) == 0 }
    }
}

/// A callback on data; called in Cyclone's receive thread, never twice at once for one reader.
pub type OnData = Box<dyn FnMut(Reader) + Send>;

#[derive(Clone, Copy)]
pub struct Reader {
    entity: dds_entity_t,
}

impl Reader {
    /// Hands each sample that is there to `each`, on loan from Cyclone.
    pub fn take(self, mut each: impl FnMut(&Sample)) -> usize {
        const BATCH: usize = 100;
        let mut samples = [ptr::null_mut::<c_void>(); BATCH];
        let mut taken = 0;
        loop {
            // SAFETY: null sample pointers ask for loans; the information is plain old data that the call fills.
            let (count, information) = unsafe {
                let mut information: [cyclors::dds_sample_info_t; BATCH] = std::mem::zeroed();
                samples[0] = ptr::null_mut();
                let count =
                    cyclors::dds_take(self.entity, samples.as_mut_ptr(), information.as_mut_ptr(), BATCH, BATCH as u32);
                (count, information)
            };
            let Ok(count) = usize::try_from(count) else { return taken };
            for (sample, _) in samples[..count].iter().zip(&information).filter(|(_, info)| info.valid_data) {
                // SAFETY: a valid sample on loan has the topic's layout until the loan is returned.
                each(unsafe { &*sample.cast::<Sample>() });
                taken += 1;
            }
            if count > 0 {
                // SAFETY: returns exactly the loans taken above.
                unsafe { cyclors::dds_return_loan(self.entity, samples.as_mut_ptr(), count as i32) };
            }
            if count < BATCH {
                return taken;
            }
        }
    }

    /// Calls `on_data` in Cyclone's receive thread from now on. The callback lives as long as the process.
    pub fn listen(self, on_data: OnData) {
        unsafe extern "C" fn trampoline(reader: dds_entity_t, argument: *mut c_void) {
            // SAFETY: the argument is the leaked box below; Cyclone serialises the calls of one reader.
            let on_data = unsafe { &mut *argument.cast::<OnData>() };
            on_data(Reader { entity: reader });
        }
        let argument: *mut OnData = Box::leak(Box::new(on_data));
        // SAFETY: the listener is copied by the reader and the argument is never freed.
        unsafe {
            let listener = cyclors::dds_create_listener(argument.cast());
            cyclors::dds_lset_data_available(listener, Some(trampoline));
            cyclors::dds_set_listener(self.entity, listener);
            cyclors::dds_delete_listener(listener);
        }
    }

    pub fn matched(self) -> u32 {
        // SAFETY: an all-zero status is valid and is filled by the call.
        unsafe {
            let mut status: cyclors::dds_subscription_matched_status_t = std::mem::zeroed();
            cyclors::dds_get_subscription_matched_status(self.entity, &mut status);
            status.current_count
        }
    }
}

/// Blocks a thread until its reader has data.
pub struct WaitSet {
    entity: dds_entity_t,
}

impl WaitSet {
    pub fn new(participant: &Participant, reader: Reader) -> Result<WaitSet, String> {
        const DATA_AVAILABLE: u32 = 1 << cyclors::dds_status_id_DDS_DATA_AVAILABLE_STATUS_ID;
        // SAFETY: plain calls on live entities.
        unsafe {
            let entity = check("wait set", cyclors::dds_create_waitset(participant.entity))?;
            check("status mask", cyclors::dds_set_status_mask(reader.entity, DATA_AVAILABLE))?;
            check("attach", cyclors::dds_waitset_attach(entity, reader.entity, 0))?;
            Ok(WaitSet { entity })
        }
    }

    /// Whether data came within the time.
    pub fn wait(&self, time: Duration) -> bool {
        // SAFETY: no attachments are asked for.
        unsafe { cyclors::dds_waitset_wait(self.entity, ptr::null_mut(), 0, time.as_nanos() as i64) > 0 }
    }
}

fn check(what: &str, code: i32) -> Result<dds_entity_t, String> {
    if code >= 0 {
        return Ok(code);
    }
    // SAFETY: Cyclone returns a static string.
    let reason = unsafe { std::ffi::CStr::from_ptr(cyclors::dds_strretcode(code) as *const c_char) };
    Err(format!("{what}: {}", reason.to_string_lossy()))
}
