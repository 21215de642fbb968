//! The API in ten minutes, for programmers who have not met DDS.
//!
//! # Data, not messages
//!
//! Programs share *topics*: named streams of typed samples. A [`DataWriter`](crate::DataWriter) writes to one topic, a
//! [`DataReader`](crate::DataReader) reads one. Neither names the other, nor an address: a
//! [`DomainParticipant`](crate::DomainParticipant) finds the participants of its *domain*, a number from 0 to 232, and matches writers
//! with readers of the same topic, type and compatible policies. There is no server.
//!
//! ```no_run
//! use std::time::Duration;
//! use thalweg::qos::{ReaderQos, WriterQos};
//! use thalweg::{DomainParticipant, Topic};
//!
//! #[derive(Topic, Debug)]
//! struct Temperature {
//!     #[topic(key)]
//!     sensor: String, // each sensor is an instance
//!     degrees: f64,
//! }
//!
//! # fn main() -> Result<(), thalweg::Error> {
//! let participant = DomainParticipant::builder(0).name("kitchen").create()?;
//! let topic = participant.create_topic::<Temperature>("temperature");
//! let reader = participant.create_reader(&topic, ReaderQos::default().reliable())?;
//! let writer = participant.create_writer(&topic, WriterQos::default())?;
//!
//! writer.wait_for_matched(1, Duration::from_secs(5))?;
//! writer.write(&Temperature { sensor: "oven".into(), degrees: 180.0 })?;
//!
//! while reader.wait(Duration::from_secs(1)) {
//!     for sample in reader.take(16) {
//!         if sample.is_valid() {
//!             println!("{:?}", sample.data()?);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Dropping a writer, reader or participant deletes it and tells its peers. All of them may be used from any thread.
//!
//! # What is promised: QoS
//!
//! Each side states *policies*: [`WriterQos`](crate::qos::WriterQos) offers, [`ReaderQos`](crate::qos::ReaderQos) requests. They match
//! where the offer is at least the request. The four that decide most:
//!
//! | policy | question | calls |
//! |---|---|---|
//! | RELIABILITY | are lost samples sent again? | `reliable()`, `best_effort()` |
//! | HISTORY | how many samples of an instance are kept? | `keep_last(depth)`, `keep_all()` |
//! | DURABILITY | does a late reader get what was written before? | `transient_local()`, `durability(…)` |
//! | DEADLINE | how often does a sample come? | `deadline(period)` |
//!
//! A reader without samples most often has a policy that does not fit. Both sides can tell:
//! [`DataReader::requested_incompatible_qos`](crate::DataReader::requested_incompatible_qos) and
//! [`DataWriter::offered_incompatible_qos`](crate::DataWriter::offered_incompatible_qos) name each policy with both values, and so does
//! `thalweg why TOPIC` for all programs of the domain.
//!
//! With `keep_all()` nothing is overwritten: a write waits for slow readers, 100 ms unless
//! [`Reliability`](crate::qos::Reliability) says otherwise, and then fails with a time-out that names how many readers are behind.
//!
//! # Instances
//!
//! Members with `#[topic(key)]` tell *instances* apart: one sensor, one robot, one order. History, deadlines and ownership count for each
//! by itself. [`DataWriter::dispose`](crate::DataWriter::dispose) ends an instance,
//! [`DataWriter::unregister`](crate::DataWriter::unregister) gives it up. Readers learn of it by a sample without value:
//! [`Sample::is_valid`](crate::Sample::is_valid) is false, [`SampleInfo::instance_state`](crate::SampleInfo::instance_state) tells why, and
//! [`Sample::key`](crate::Sample::key) which instance.
//!
//! # Four ways to wait
//!
//! | way | when |
//! |---|---|
//! | [`DataReader::wait`](crate::DataReader::wait) and [`take`](crate::DataReader::take) | a thread for one reader |
//! | a listener, [`DataReaderBuilder::on_data`](crate::DataReaderBuilder::on_data) | a callback on a thread of Thalweg's |
//! | [`WaitSet`](crate::conditions::WaitSet) | several readers, statuses or a descriptor on one thread |
//! | [`DataReader::recv`](crate::DataReader::recv), [`stream`](crate::DataReader::stream) | a task of any asynchronous runtime |
//!
//! ```no_run
//! # use thalweg::{DataReader, Error, Raw};
//! async fn receive(reader: DataReader<Raw>) -> Result<(), Error> {
//!     loop {
//!         let sample = reader.recv().await;
//!         println!("{} bytes", sample.bytes().len());
//!     }
//! }
//! ```
//!
//! `take` removes samples, `read` leaves them. What happens besides data are [statuses](crate::status): matches, lost samples, missed
//! deadlines. Each can be asked for, listened to, and waited for.
//!
//! # Errors
//!
//! Every call that can fail returns an [`Error`](crate::Error). It displays as a sentence with a remedy, and its
//! [`kind`](crate::Error::kind) is DDS's return code. A policy that cannot be kept is refused where the entity is created, never ignored.
//!
//! ```no_run
//! # use thalweg::{DataWriter, Error, ErrorKind, Raw};
//! # fn send(writer: &DataWriter<Raw>, bytes: &[u8]) -> Result<(), Error> {
//! match writer.write_serialized(bytes) {
//!     Ok(_) => Ok(()),
//!     Err(error) if error.kind() == ErrorKind::Timeout => {
//!         eprintln!("{error}"); // a reader is behind: this sample was not written
//!         Ok(())
//!     }
//!     Err(error) => Err(error),
//! }
//! # }
//! ```
//!
//! # Words of the specification
//!
//! | DDS | here |
//! |---|---|
//! | DomainParticipantFactory | [`DomainParticipant::builder`](crate::DomainParticipant::builder) |
//! | TypeSupport, IDL | `#[derive(Topic)]`, or `thalweg idl` for types that exist as IDL or `.msg` |
//! | Publisher, Subscriber | made on the way; [`create_publisher`](crate::DomainParticipant::create_publisher) where writers share partitions or coherent sets |
//! | ContentFilteredTopic | [`DataReaderBuilder::filter`](crate::DataReaderBuilder::filter) |
//! | QueryCondition | [`DataReader::query_condition`](crate::DataReader::query_condition) |
//! | InstanceHandle | [`KeyHash`](crate::types::KeyHash); the GUID of entities |
//! | built-in topics | [`create_builtin_reader`](crate::DomainParticipant::create_builtin_reader) |
//!
//! Next: the module [`qos`](crate::qos) for all policies, [`configuration`](crate::configuration) to set them without recompiling,
//! [`flow_controller`](crate::flow_controller) for large data in the background.
