//! Ids of parameters in discovery data and inline QoS (RTPS 2.5 §9.6, DDS-XTypes 1.3 §7.6.3, DDS Security 1.1 §7.4).
//!
//! The meaning of ids with [`VENDOR`] set depends on the *sender's* vendor: check the vendor id before reading one.

/// Set in ids that belong to vendors.
pub const VENDOR: u16 = 0x8000;
/// Set in ids that a receiver must understand, or else ignore the whole entity.
pub const MUST_UNDERSTAND: u16 = 0x4000;

/// Padding, without meaning.
pub const PAD: u16 = 0x0000;
/// Ends a list.
pub const SENTINEL: u16 = 0x0001;
/// Lease of a silent participant.
pub const PARTICIPANT_LEASE_DURATION: u16 = 0x0002;
/// Shortest time between two samples of an instance that a reader wants.
pub const TIME_BASED_FILTER: u16 = 0x0004;
/// Name of the topic.
pub const TOPIC_NAME: u16 = 0x0005;
/// Rank of a writer under exclusive ownership.
pub const OWNERSHIP_STRENGTH: u16 = 0x0006;
/// Name of the topic's type.
pub const TYPE_NAME: u16 = 0x0007;
/// The domain a participant is in.
pub const DOMAIN_ID: u16 = 0x000f;
/// RTPS version of the participant.
pub const PROTOCOL_VERSION: u16 = 0x0015;
/// Vendor of the participant.
pub const VENDOR_ID: u16 = 0x0016;
/// RELIABILITY policy.
pub const RELIABILITY: u16 = 0x001a;
/// LIVELINESS policy.
pub const LIVELINESS: u16 = 0x001b;
/// DURABILITY policy.
pub const DURABILITY: u16 = 0x001d;
/// DURABILITY_SERVICE policy.
pub const DURABILITY_SERVICE: u16 = 0x001e;
/// OWNERSHIP policy.
pub const OWNERSHIP: u16 = 0x001f;
/// PRESENTATION policy of the publisher or subscriber.
pub const PRESENTATION: u16 = 0x0021;
/// DEADLINE policy.
pub const DEADLINE: u16 = 0x0023;
/// DESTINATION_ORDER policy.
pub const DESTINATION_ORDER: u16 = 0x0025;
/// LATENCY_BUDGET policy.
pub const LATENCY_BUDGET: u16 = 0x0027;
/// PARTITION policy of the publisher or subscriber.
pub const PARTITION: u16 = 0x0029;
/// LIFESPAN policy.
pub const LIFESPAN: u16 = 0x002b;
/// USER_DATA policy.
pub const USER_DATA: u16 = 0x002c;
/// GROUP_DATA policy of the publisher or subscriber.
pub const GROUP_DATA: u16 = 0x002d;
/// TOPIC_DATA policy.
pub const TOPIC_DATA: u16 = 0x002e;
/// A unicast address of an endpoint.
pub const UNICAST_LOCATOR: u16 = 0x002f;
/// A multicast address of an endpoint.
pub const MULTICAST_LOCATOR: u16 = 0x0030;
/// A unicast address for the user data of all endpoints that name none.
pub const DEFAULT_UNICAST_LOCATOR: u16 = 0x0031;
/// A unicast address of the built-in endpoints.
pub const METATRAFFIC_UNICAST_LOCATOR: u16 = 0x0032;
/// A multicast address of the built-in endpoints.
pub const METATRAFFIC_MULTICAST_LOCATOR: u16 = 0x0033;
/// Counter of a participant's manual assertions of liveliness.
pub const PARTICIPANT_MANUAL_LIVELINESS_COUNT: u16 = 0x0034;
/// Content filter of a reader.
pub const CONTENT_FILTER_PROPERTY: u16 = 0x0035;
/// HISTORY policy.
pub const HISTORY: u16 = 0x0040;
/// RESOURCE_LIMITS policy.
pub const RESOURCE_LIMITS: u16 = 0x0041;
/// Whether a reader needs QoS with every sample.
pub const EXPECTS_INLINE_QOS: u16 = 0x0043;
/// Built-in endpoints in the numbering of RTPS 2.0; a few peers still send it beside [`BUILTIN_ENDPOINT_SET`].
pub const PARTICIPANT_BUILTIN_ENDPOINTS: u16 = 0x0044;
/// A multicast address for the user data of all endpoints that name none.
pub const DEFAULT_MULTICAST_LOCATOR: u16 = 0x0048;
/// TRANSPORT_PRIORITY policy.
pub const TRANSPORT_PRIORITY: u16 = 0x0049;
/// Key of participant data.
pub const PARTICIPANT_GUID: u16 = 0x0050;
/// Publisher or subscriber of an endpoint.
pub const GROUP_GUID: u16 = 0x0052;
/// Entity id of an endpoint's publisher or subscriber.
pub const GROUP_ENTITY_ID: u16 = 0x0053;
/// Which content filters a sample passes.
pub const CONTENT_FILTER_INFO: u16 = 0x0055;
/// The coherent set that a sample belongs to.
pub const COHERENT_SET: u16 = 0x0056;
/// The readers that a sample is for.
pub const DIRECTED_WRITE: u16 = 0x0057;
/// The built-in endpoints that a participant has.
pub const BUILTIN_ENDPOINT_SET: u16 = 0x0058;
/// Pairs of name and value.
pub const PROPERTY_LIST: u16 = 0x0059;
/// Key of endpoint data.
pub const ENDPOINT_GUID: u16 = 0x005a;
/// Upper bound of a serialized sample, in bytes.
pub const TYPE_MAX_SIZE_SERIALIZED: u16 = 0x0060;
/// The writer and number that a relayed sample comes from.
pub const ORIGINAL_WRITER_INFO: u16 = 0x0061;
/// Name that the application gave to the entity.
pub const ENTITY_NAME: u16 = 0x0062;
/// The group-coherent set that a sample belongs to.
pub const GROUP_COHERENT_SET: u16 = 0x0063;
/// Number of a sample within its publisher.
pub const GROUP_SEQUENCE_NUMBER: u16 = 0x0064;
/// Writers of a publisher.
pub const WRITER_GROUP_INFO: u16 = 0x0065;
/// Writers of a publisher, protected.
pub const SECURE_WRITER_GROUP_INFO: u16 = 0x0066;
/// Hash of the instance's key.
pub const KEY_HASH: u16 = 0x0070;
/// Whether the sample disposes or unregisters its instance.
pub const STATUS_INFO: u16 = 0x0071;
/// Type description of XTypes 1.0 and 1.1.
pub const TYPE_OBJECT: u16 = 0x0072;
/// DATA_REPRESENTATION policy.
pub const DATA_REPRESENTATION: u16 = 0x0073;
/// TYPE_CONSISTENCY_ENFORCEMENT policy.
pub const TYPE_CONSISTENCY: u16 = 0x0074;
/// Type identifiers of XTypes 1.2 and later.
pub const TYPE_INFORMATION: u16 = 0x0075;
/// QoS of the built-in endpoints that differs from the standard.
pub const BUILTIN_ENDPOINT_QOS: u16 = 0x0077;
/// The request that a reply answers.
pub const RELATED_SAMPLE_IDENTITY: u16 = 0x0083;
/// Identity of a secured participant.
pub const IDENTITY_TOKEN: u16 = 0x1001;
/// Permissions of a secured participant.
pub const PERMISSIONS_TOKEN: u16 = 0x1002;
/// Protection of an endpoint.
pub const ENDPOINT_SECURITY_INFO: u16 = 0x1004;
/// Protection of a participant.
pub const PARTICIPANT_SECURITY_INFO: u16 = 0x1005;
/// Freshness of an identity.
pub const IDENTITY_STATUS_TOKEN: u16 = 0x1006;
/// Tells apart participants of one domain; carries the must-understand bit.
pub const DOMAIN_TAG: u16 = 0x4014;

/// Fast DDS: [`RELATED_SAMPLE_IDENTITY`] under the number that it had first.
pub const FAST_DDS_RELATED_SAMPLE_IDENTITY: u16 = 0x800f;
/// Cyclone DDS: bytes of the participant's socket receive buffer.
pub const CYCLONE_RECEIVE_BUFFER: u16 = 0x8019;
/// Thalweg: sixteen bytes that are equal for all participants of one running operating system. The number lies outside the
/// range that vendors crowd, because some peers read others' vendor ids as their own.
pub const THALWEG_HOST: u16 = 0x8f01;
/// Thalweg: bytes of the participant's socket receive buffer.
pub const THALWEG_RECEIVE_BUFFER: u16 = 0x8f02;
/// Thalweg: an address of the participant (16 bytes, as in a locator) and the MTU of its link, once for each address whose link
/// has another one than Ethernet's 1500 bytes.
pub const THALWEG_LINK_MTU: u16 = 0x8f03;
/// Thalweg: sixteen bytes that name the history which a PERSISTENT writer goes on with, whatever its GUID.
pub const THALWEG_HISTORY: u16 = 0x8f04;
