// The few entities of Fast DDS that the measurements need, behind a C interface.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fastdds/config.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/utils/IPLocator.hpp>

using namespace eprosima::fastdds;
using namespace eprosima::fastdds::dds;

namespace {

/// `final struct { uint64 number; sequence<octet> bytes; }`; a writer's sample borrows, a reader's owns.
struct Sample
{
    uint64_t number = 0;
    const uint8_t* bytes = nullptr;
    uint32_t length = 0;
    std::vector<uint8_t> owned;
};

/// XCDR1, little-endian: four bytes of encapsulation, the number, the length, the bytes.
constexpr uint32_t HEADER = 4 + 8 + 4;

class SampleType : public TopicDataType
{
public:

    explicit SampleType(const char* name)
    {
        set_name(name);
        // What Fast DDS reserves at first; payloads grow to what they need.
        max_serialized_type_size = HEADER + 256;
        is_compute_key_provided = false;
    }

    bool serialize(const void* const data, rtps::SerializedPayload_t& payload, DataRepresentationId_t) override
    {
        const Sample& sample = *static_cast<const Sample*>(data);
        const uint32_t size = HEADER + sample.length;
        if (payload.max_size < size) {
            return false;
        }
        const uint8_t encapsulation[4] = {0, 1, 0, 0};
        std::memcpy(payload.data, encapsulation, 4);
        std::memcpy(payload.data + 4, &sample.number, 8);
        std::memcpy(payload.data + 12, &sample.length, 4);
        if (sample.length > 0) {
            std::memcpy(payload.data + HEADER, sample.bytes, sample.length);
        }
        payload.encapsulation = CDR_LE;
        payload.length = size;
        return true;
    }

    bool deserialize(rtps::SerializedPayload_t& payload, void* data) override
    {
        Sample& sample = *static_cast<Sample*>(data);
        if (payload.length < HEADER || payload.data[1] != 1) {
            return false; // Too short, or not little-endian XCDR1.
        }
        std::memcpy(&sample.number, payload.data + 4, 8);
        std::memcpy(&sample.length, payload.data + 12, 4);
        if (payload.length - HEADER < sample.length) {
            return false;
        }
        sample.owned.assign(payload.data + HEADER, payload.data + HEADER + sample.length);
        sample.bytes = sample.owned.data();
        return true;
    }

    uint32_t calculate_serialized_size(const void* const data, DataRepresentationId_t) override
    {
        return HEADER + static_cast<const Sample*>(data)->length;
    }

    void* create_data() override
    {
        return new Sample();
    }

    void delete_data(void* data) override
    {
        delete static_cast<Sample*>(data);
    }

    bool compute_key(rtps::SerializedPayload_t&, rtps::InstanceHandle_t&, bool) override
    {
        return false;
    }

    bool compute_key(const void* const, rtps::InstanceHandle_t&, bool) override
    {
        return false;
    }
};

using OnSample = void (*)(void*, uint64_t, const uint8_t*, size_t);
using OnTaken = void (*)(void*);

/// Room in a KEEP_ALL history of the tuned profile.
constexpr int32_t TUNED_SAMPLES_MAX = 20000;
/// Bytes of the tuned profile's sockets.
constexpr uint32_t TUNED_SOCKET_BUFFER = 4 << 20;

} // namespace

/// What an endpoint is to be.
struct FastChannel
{
    const char* topic;
    const char* type_name;
    bool keep_all;
    bool best_effort;
    bool durable;
    /// Of KEEP_LAST.
    int32_t depth;
    /// Room in a KEEP_ALL history; 0 leaves it to the profile.
    int32_t samples_max;
    uint32_t max_blocking_ms;
};

/// Whether settings come from the file that Fast DDS's own variable names, and none of the measurements' own.
static bool has_profiles()
{
    return std::getenv("FASTDDS_DEFAULT_PROFILES_FILE") != nullptr;
}

struct FastParticipant
{
    DomainParticipant* entity;
    bool tuned;
    /// The port of the group that readers announce; 0: none, as shipped.
    uint32_t group_port;
};

struct FastWriter
{
    DataWriter* entity;
};

struct FastReader : public DataReaderListener
{
    DataReader* entity = nullptr;
    OnSample on_sample = nullptr;
    OnTaken on_taken = nullptr;
    void* argument = nullptr;
    Sample sample;
    WaitSet wait_set;

    void take()
    {
        SampleInfo info;
        while (entity->take_next_sample(&sample, &info) == RETCODE_OK) {
            if (info.valid_data) {
                on_sample(argument, sample.number, sample.bytes, sample.length);
            }
        }
        on_taken(argument);
    }

    void on_data_available(DataReader*) override
    {
        take();
    }
};

static Duration_t milliseconds(uint32_t count)
{
    return Duration_t(static_cast<int32_t>(count / 1000), (count % 1000) * 1000000);
}

static Topic* topic_of(FastParticipant* participant, const FastChannel* channel)
{
    TypeSupport type(new SampleType(channel->type_name));
    type.register_type(participant->entity);
    return participant->entity->create_topic(channel->topic, channel->type_name, TOPIC_QOS_DEFAULT);
}

/// The policies that writers and readers share.
template<typename Qos>
static void configure(Qos& qos, const FastParticipant* participant, const FastChannel* channel)
{
    qos.reliability().kind = channel->best_effort ? BEST_EFFORT_RELIABILITY_QOS : RELIABLE_RELIABILITY_QOS;
    // As shipped, a writer drops a sample after 100 ms of back-pressure.
    qos.reliability().max_blocking_time = milliseconds(channel->max_blocking_ms);
    qos.durability().kind = channel->durable ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
    qos.data_sharing().off();
    if (channel->keep_all) {
        qos.history().kind = KEEP_ALL_HISTORY_QOS;
    } else {
        qos.history().kind = KEEP_LAST_HISTORY_QOS;
        qos.history().depth = channel->depth;
    }
    if (channel->samples_max > 0) {
        qos.resource_limits().max_samples = channel->samples_max;
        qos.resource_limits().max_samples_per_instance = channel->samples_max;
        // What is reserved at first must not exceed it.
        qos.resource_limits().allocated_samples = std::min<int32_t>(100, channel->samples_max);
    } else if (participant->tuned && channel->keep_all) {
        qos.resource_limits().max_samples = TUNED_SAMPLES_MAX;
        qos.resource_limits().max_samples_per_instance = TUNED_SAMPLES_MAX;
    }
}

extern "C" {

const char* fast_version()
{
    return FASTDDS_VERSION_STR;
}

/// Uses the interface with this IPv4 address alone; 0.0.0.0: all, as shipped. Grouped readers announce the group of the RTPS
/// specification, to which writers then send.
FastParticipant* fast_participant(uint32_t domain, const char* address, bool tuned, bool grouped)
{
    auto factory = DomainParticipantFactory::get_instance();
    factory->load_profiles();
    DomainParticipantQos qos = factory->get_default_participant_qos();
    auto transport = std::make_shared<rtps::UDPv4TransportDescriptor>();
    if (std::strcmp(address, "0.0.0.0") != 0) {
        transport->interfaceWhiteList.push_back(address);
    }
    if (tuned) {
        transport->sendBufferSize = TUNED_SOCKET_BUFFER;
        transport->receiveBufferSize = TUNED_SOCKET_BUFFER;
    }
    if (!has_profiles()) {
        // UDP alone: no shared memory.
        qos.transport().use_builtin_transports = false;
        qos.transport().user_transports.push_back(transport);
    }
    // Types are matched by name: other vendors know nothing of Fast DDS's type service.
    qos.properties().properties().emplace_back("fastdds.type_propagation", "disabled");
    DomainParticipant* entity = factory->create_participant(domain, qos);
    const uint32_t group_port = grouped ? 7401 + 250 * domain : 0;
    return entity == nullptr ? nullptr : new FastParticipant{entity, tuned, group_port};
}

void fast_participant_delete(FastParticipant* participant)
{
    participant->entity->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(participant->entity);
    delete participant;
}

FastWriter* fast_writer(FastParticipant* participant, const FastChannel* channel)
{
    Topic* topic = topic_of(participant, channel);
    Publisher* publisher = participant->entity->create_publisher(PUBLISHER_QOS_DEFAULT);
    if (topic == nullptr || publisher == nullptr) {
        return nullptr;
    }
    DataWriterQos qos = publisher->get_default_datawriter_qos();
    if (!has_profiles()) {
        configure(qos, participant, channel);
    }
    qos.representation().m_value = {XCDR_DATA_REPRESENTATION};
    if (participant->tuned) {
        qos.publish_mode().kind = ASYNCHRONOUS_PUBLISH_MODE;
        qos.reliable_writer_qos().times.heartbeat_period = Duration_t(0, 10 * 1000 * 1000);
        qos.reliable_writer_qos().times.nack_response_delay = Duration_t(0, 0);
        qos.reliable_writer_qos().times.nack_supression_duration = Duration_t(0, 0);
    }
    DataWriter* entity = publisher->create_datawriter(topic, qos);
    return entity == nullptr ? nullptr : new FastWriter{entity};
}

int32_t fast_write(FastWriter* writer, uint64_t number, const uint8_t* bytes, uint32_t length)
{
    Sample sample;
    sample.number = number;
    sample.bytes = bytes;
    sample.length = length;
    return writer->entity->write(&sample);
}

size_t fast_writer_matched(FastWriter* writer)
{
    PublicationMatchedStatus status;
    writer->entity->get_publication_matched_status(status);
    return static_cast<size_t>(status.current_count);
}

bool fast_wait_for_acknowledgements(FastWriter* writer, uint32_t time_ms)
{
    return writer->entity->wait_for_acknowledgments(milliseconds(time_ms)) == RETCODE_OK;
}

/// With `listen`, the callbacks come from Fast DDS's receive thread; otherwise from `fast_wait`.
FastReader* fast_reader(
        FastParticipant* participant,
        const FastChannel* channel,
        OnSample on_sample,
        OnTaken on_taken,
        void* argument,
        bool listen)
{
    Topic* topic = topic_of(participant, channel);
    Subscriber* subscriber = participant->entity->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
    if (topic == nullptr || subscriber == nullptr) {
        return nullptr;
    }
    DataReaderQos qos = subscriber->get_default_datareader_qos();
    if (!has_profiles()) {
        configure(qos, participant, channel);
    }
    qos.representation().m_value = {XCDR_DATA_REPRESENTATION};
    if (participant->group_port != 0) {
        rtps::Locator_t group(LOCATOR_KIND_UDPv4, participant->group_port);
        rtps::IPLocator::setIPv4(group, 239, 255, 0, 1);
        qos.endpoint().multicast_locator_list.push_back(group);
    }
    if (participant->tuned) {
        qos.reliable_reader_qos().times.heartbeat_response_delay = Duration_t(0, 0);
    }
    auto reader = std::make_unique<FastReader>();
    reader->on_sample = on_sample;
    reader->on_taken = on_taken;
    reader->argument = argument;
    // Without callbacks until the entity is known to the listener.
    reader->entity = subscriber->create_datareader(topic, qos);
    if (reader->entity == nullptr) {
        return nullptr;
    }
    if (listen) {
        reader->entity->set_listener(reader.get(), StatusMask::data_available());
    } else {
        reader->entity->get_statuscondition().set_enabled_statuses(StatusMask::data_available());
        reader->wait_set.attach_condition(reader->entity->get_statuscondition());
    }
    return reader.release();
}

/// Waits for data and hands it over.
void fast_wait(FastReader* reader, uint32_t time_ms)
{
    ConditionSeq active;
    if (reader->wait_set.wait(active, milliseconds(time_ms)) == RETCODE_OK) {
        reader->take();
    }
}

size_t fast_reader_matched(FastReader* reader)
{
    SubscriptionMatchedStatus status;
    reader->entity->get_subscription_matched_status(status);
    return static_cast<size_t>(status.current_count);
}

/// No callback comes any more. The participant deletes the entity.
void fast_reader_silence(FastReader* reader)
{
    reader->entity->set_listener(nullptr);
}

} // extern "C"
