// The shapes demonstration on Fast DDS, with the options and lines of the OMG's interoperability suite.
//
// What Fast DDS does not have ends it with the line `<what> = not supported`: coherent and ordered access, TIME_BASED_FILTER, and
// PERSISTENT, which needs a store of its own.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/ContentFilteredTopic.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicData.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicDataFactory.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicPubSubType.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicType.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicTypeBuilder.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicTypeBuilderFactory.hpp>
#include <fastdds/dds/xtypes/dynamic_types/MemberDescriptor.hpp>
#include <fastdds/dds/xtypes/dynamic_types/TypeDescriptor.hpp>
#include <fastdds/dds/xtypes/type_representation/ITypeObjectRegistry.hpp>
#include <fastdds/dds/xtypes/type_representation/TypeObject.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>

using namespace eprosima::fastdds;
using namespace eprosima::fastdds::dds;

namespace {

using Data = DynamicData::_ref_type;

enum : MemberId { COLOR, X, Y, SIZE, OCTETS };

/// Whoever asks for what is not there.
struct NotSupported : std::runtime_error
{
    using std::runtime_error::runtime_error;
};

void say(const std::string& line)
{
    static std::mutex mutex;
    const std::lock_guard<std::mutex> guard(mutex);
    std::cout << line << std::endl;
}

template<typename T>
T* made(T* entity, const char* what)
{
    if (entity == nullptr) {
        throw std::runtime_error(std::string("failed to create ") + what);
    }
    return entity;
}

/// The options: flags, and words with a value.
class Options
{
public:

    Options(int count, const char* const* words)
    {
        static const std::set<std::string> flags {
            "-P", "-S", "-b", "-r", "-w", "-R", "--take-read", "--coherent", "--ordered"};
        for (int at = 0; at < count; ++at) {
            const std::string word = words[at];
            if (flags.count(word) > 0) {
                flags_.insert(word);
            } else if (at + 1 < count) {
                values_[word] = words[++at];
            } else {
                throw std::runtime_error(word + " needs a value");
            }
        }
    }

    bool has(const std::string& word) const
    {
        return flags_.count(word) > 0 || values_.count(word) > 0;
    }

    std::string text(const std::string& word, const std::string& otherwise) const
    {
        const auto found = values_.find(word);
        return found == values_.end() ? otherwise : found->second;
    }

    int64_t number(const std::string& word, int64_t otherwise) const
    {
        const auto found = values_.find(word);
        return found == values_.end() ? otherwise : std::stoll(found->second);
    }

private:

    std::set<std::string> flags_;
    std::map<std::string, std::string> values_;
};

Duration_t milliseconds(int64_t count)
{
    return Duration_t(static_cast<int32_t>(count / 1000), static_cast<uint32_t>(count % 1000 * 1000000));
}

/// The type of a shape, as `shape.idl` of the suite describes it.
DynamicType::_ref_type shape_type()
{
    auto factory = DynamicTypeBuilderFactory::get_instance();
    auto descriptor = traits<TypeDescriptor>::make_shared();
    descriptor->kind(TK_STRUCTURE);
    descriptor->name("ShapeType");
    descriptor->extensibility_kind(ExtensibilityKind::APPENDABLE);
    auto builder = factory->create_type(descriptor);
    const auto add = [&builder](MemberId id, const char* name, const DynamicType::_ref_type& type) {
        auto member = traits<MemberDescriptor>::make_shared();
        member->id(id);
        member->name(name);
        member->type(type);
        member->is_key(id == COLOR);
        if (builder->add_member(member) != RETCODE_OK) {
            throw std::runtime_error(std::string("no member ") + name);
        }
    };
    const auto number = factory->get_primitive_type(TK_INT32);
    const auto octets = factory->create_sequence_type(
            factory->get_primitive_type(TK_UINT8), static_cast<uint32_t>(LENGTH_UNLIMITED));
    add(COLOR, "color", factory->create_string_type(128)->build());
    add(X, "x", number);
    add(Y, "y", number);
    add(SIZE, "shapesize", number);
    add(OCTETS, "additional_payload_size", octets->build());
    return builder->build();
}

/// A dynamic type whose key hash is the MD5 digest of the key where that may be longer than 16 octets (RTPS 2.5 §9.6.4.8). Without it Fast DDS
/// takes a short key itself as its hash, and sends nothing else of an instance that is disposed.
class ShapeSupport : public DynamicPubSubType
{
public:

    using DynamicPubSubType::DynamicPubSubType;

    bool compute_key(rtps::SerializedPayload_t& payload, rtps::InstanceHandle_t& handle, bool) override
    {
        return DynamicPubSubType::compute_key(payload, handle, true);
    }

    bool compute_key(const void* const data, rtps::InstanceHandle_t& handle, bool) override
    {
        return DynamicPubSubType::compute_key(data, handle, true);
    }
};

/// Has the registry know a dynamic type by its name as well, by which filters look for it.
void name_type(xtypes::ITypeObjectRegistry& registry, const DynamicType::_ref_type& type)
{
    xtypes::TypeIdentifierPair identifiers;
    registry.register_typeobject_w_dynamic_type(type, identifiers);
    for (const auto& identifier : {identifiers.type_identifier1(), identifiers.type_identifier2()}) {
        xtypes::TypeObject object;
        if (identifier._d() == xtypes::EK_COMPLETE && registry.get_type_object(identifier, object) == RETCODE_OK) {
            xtypes::TypeIdentifierPair named;
            registry.register_type_object("ShapeType", object.complete(), named);
        }
    }
}

/// A sample as the suite reads it.
std::string line(const std::string& topic, const Data& shape)
{
    std::string color;
    int32_t x = 0;
    int32_t y = 0;
    int32_t size = 0;
    UInt8Seq octets;
    shape->get_string_value(color, COLOR);
    shape->get_int32_value(x, X);
    shape->get_int32_value(y, Y);
    shape->get_int32_value(size, SIZE);
    shape->get_uint8_values(octets, OCTETS);
    char text[512];
    std::snprintf(text, sizeof text, "%-10s %-10s %03d %03d [%d]", topic.c_str(), color.c_str(), x, y, size);
    return octets.empty() ? text : std::string(text) + " {" + std::to_string(octets.back()) + "}";
}

/// Prints statuses of the endpoints of a topic.
class News : public DataWriterListener, public DataReaderListener
{
public:

    explicit News(const std::string& topic)
        : topic_(topic)
    {
    }

    void on_publication_matched(DataWriter*, const PublicationMatchedStatus& status) override
    {
        tell("on_publication_matched", "matched readers " + change(status.current_count, status.current_count_change));
    }

    void on_offered_incompatible_qos(DataWriter*, const OfferedIncompatibleQosStatus& status) override
    {
        tell("on_offered_incompatible_qos", std::to_string(status.last_policy_id));
    }

    void on_offered_deadline_missed(DataWriter*, const OfferedDeadlineMissedStatus& status) override
    {
        tell("on_offered_deadline_missed", change(status.total_count, status.total_count_change));
    }

    void on_subscription_matched(DataReader*, const SubscriptionMatchedStatus& status) override
    {
        tell("on_subscription_matched", "matched writers " + change(status.current_count, status.current_count_change));
    }

    void on_requested_incompatible_qos(DataReader*, const RequestedIncompatibleQosStatus& status) override
    {
        tell("on_requested_incompatible_qos", std::to_string(status.last_policy_id));
    }

    void on_requested_deadline_missed(DataReader*, const RequestedDeadlineMissedStatus& status) override
    {
        tell("on_requested_deadline_missed", change(status.total_count, status.total_count_change));
    }

    void on_liveliness_changed(DataReader*, const LivelinessChangedStatus& status) override
    {
        tell("on_liveliness_changed", "(alive = " + std::to_string(status.alive_count) + ")");
    }

private:

    static std::string change(int64_t count, int64_t change)
    {
        return std::to_string(count) + " (change = " + std::to_string(change) + ")";
    }

    void tell(const std::string& name, const std::string& text) const
    {
        say(name + "() topic: '" + topic_ + "'  type: 'ShapeType' : " + text);
    }

    std::string topic_;
};

/// The name alone, then with the numbers from 1.
std::vector<std::string> numbered(const std::string& name, int64_t count)
{
    std::vector<std::string> all {name};
    for (int64_t number = 1; number < count; ++number) {
        all.push_back(name + std::to_string(number));
    }
    return all;
}

void refuse_what_is_missing(const Options& options)
{
    if (options.has("--coherent")) {
        throw NotSupported("coherent access");
    }
    if (options.has("--ordered")) {
        throw NotSupported("ordered access");
    }
    if (options.number("--time-filter", 0) > 0) {
        throw NotSupported("TIME_BASED_FILTER");
    }
    if (options.text("-D", "v") == "p") {
        throw NotSupported("DURABILITY PERSISTENT");
    }
    if (options.has("--datafrag-size")) {
        throw NotSupported("datafrag-size");
    }
}

/// The policies that writers and readers share.
template<typename Qos>
void configure(Qos& qos, const Options& options)
{
    qos.data_sharing().off();
    qos.reliability().kind = options.has("-b") ? BEST_EFFORT_RELIABILITY_QOS : RELIABLE_RELIABILITY_QOS;
    qos.reliability().max_blocking_time = milliseconds(10000);
    const int64_t depth = options.number("-k", 1);
    qos.history().kind = depth == 0 ? KEEP_ALL_HISTORY_QOS : KEEP_LAST_HISTORY_QOS;
    if (depth > 0) {
        qos.history().depth = static_cast<int32_t>(depth);
    }
    const std::map<std::string, DurabilityQosPolicyKind> durabilities {
        {"v", VOLATILE_DURABILITY_QOS}, {"l", TRANSIENT_LOCAL_DURABILITY_QOS}, {"t", TRANSIENT_DURABILITY_QOS}};
    qos.durability().kind = durabilities.at(options.text("-D", "v"));
    qos.representation().m_value = {
        options.number("-x", 1) == 2 ? XCDR2_DATA_REPRESENTATION : XCDR_DATA_REPRESENTATION};
    qos.ownership().kind = options.number("-s", -1) >= 0 ? EXCLUSIVE_OWNERSHIP_QOS : SHARED_OWNERSHIP_QOS;
    if (options.number("-f", 0) > 0) {
        qos.deadline().period = milliseconds(options.number("-f", 0));
    }
}

/// PARTITION, which belongs to publishers and subscribers.
template<typename Qos>
void divide(Qos& qos, const Options& options)
{
    if (options.has("-p")) {
        qos.partition().push_back(options.text("-p", "").c_str());
    }
}

void pause(const Options& options, const std::string& word, int64_t otherwise)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(options.number(word, otherwise)));
}

void publish(const Options& options, DomainParticipant* participant, const DynamicType::_ref_type& type)
{
    PublisherQos publisher_qos;
    divide(publisher_qos, options);
    Publisher* publisher = made(participant->create_publisher(publisher_qos), "publisher");
    DataWriterQos qos;
    configure(qos, options);
    if (options.number("-s", -1) >= 0) {
        qos.ownership_strength().value = static_cast<uint32_t>(options.number("-s", 0));
    }
    if (options.has("--lifespan")) {
        qos.lifespan().duration = milliseconds(options.number("--lifespan", 0));
    }
    const std::string end = options.text("--final-instance-state", "");
    qos.writer_data_lifecycle().autodispose_unregistered_instances = end != "u";
    const std::string color = options.text("-c", "BLUE");
    std::vector<std::pair<std::string, DataWriter*>> writers;
    std::vector<std::unique_ptr<News>> news;
    for (const std::string& name : numbered(options.text("-t", ""), options.number("--num-topics", 1))) {
        say("Create topic: " + name);
        say("Create writer for topic: " + name + " color: " + color);
        Topic* topic = made(participant->create_topic(name, "ShapeType", TOPIC_QOS_DEFAULT), "topic");
        news.push_back(std::make_unique<News>(name));
        writers.emplace_back(name, made(publisher->create_datawriter(topic, qos, news.back().get()), "writer"));
    }
    const std::vector<std::string> colors = numbered(color, options.number("--num-instances", 1));
    const auto shape_of = [&](const std::string& color, int64_t at, int64_t size) {
        Data shape = DynamicDataFactory::get_instance()->create_data(type);
        shape->set_string_value(COLOR, color);
        shape->set_int32_value(X, static_cast<int32_t>(at));
        shape->set_int32_value(Y, static_cast<int32_t>(at));
        shape->set_int32_value(SIZE, static_cast<int32_t>(size));
        shape->set_uint8_values(OCTETS, UInt8Seq(options.number("--additional-payload-size", 0), 255));
        return shape;
    };
    const int64_t fixed = options.number("-z", 20);
    const int64_t modulo = options.number("--size-modulo", INT32_MAX);
    const int64_t iterations = options.number("--num-iterations", INT64_MAX);
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
        const int64_t size = fixed > 0 ? fixed : iteration % modulo + 1;
        for (const auto& [name, writer] : writers) {
            for (const std::string& color : colors) {
                Data shape = shape_of(color, iteration % 200, size);
                if (writer->write(&shape) == RETCODE_OK && options.has("-w")) {
                    say(line(name, shape));
                }
            }
        }
        pause(options, "--write-period", 33);
    }
    for (const auto& [name, writer] : writers) {
        for (const std::string& color : colors) {
            Data shape = shape_of(color, 0, 0);
            if (end == "u") {
                writer->unregister_instance(&shape, HANDLE_NIL);
            } else if (end == "d") {
                writer->dispose(&shape, HANDLE_NIL);
            }
        }
        writer->wait_for_acknowledgments(milliseconds(1000));
    }
    if (!end.empty()) {
        // It is there to be read before the writer leaves, which is another end.
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
    }
    participant->delete_contained_entities();
}

void read(const Options& options, const std::string& topic, DataReader* reader, const DynamicType::_ref_type& type)
{
    Data shape = DynamicDataFactory::get_instance()->create_data(type);
    SampleInfo info;
    const bool reads = options.has("-R");
    while ((reads ? reader->read_next_sample(&shape, &info) : reader->take_next_sample(&shape, &info)) == RETCODE_OK) {
        if (info.valid_data) {
            say(line(topic, shape));
        }
        // An end may be told with the last sample.
        if (info.instance_state == NOT_ALIVE_DISPOSED_INSTANCE_STATE) {
            say(topic + "  NOT_ALIVE_DISPOSED_INSTANCE_STATE");
        } else if (info.instance_state == NOT_ALIVE_NO_WRITERS_INSTANCE_STATE) {
            say(topic + "  NOT_ALIVE_NO_WRITERS_INSTANCE_STATE");
        }
    }
}

void subscribe(const Options& options, DomainParticipant* participant, const DynamicType::_ref_type& type)
{
    SubscriberQos subscriber_qos;
    divide(subscriber_qos, options);
    Subscriber* subscriber = made(participant->create_subscriber(subscriber_qos), "subscriber");
    DataReaderQos qos;
    configure(qos, options);
    const std::string by_color = options.has("-c") ? "color = '" + options.text("-c", "") + "'" : "";
    const std::string filter = options.text("--cft", by_color);
    std::vector<std::pair<std::string, DataReader*>> readers;
    std::vector<std::unique_ptr<News>> news;
    for (const std::string& name : numbered(options.text("-t", ""), options.number("--num-topics", 1))) {
        say("Create topic: " + name);
        say("Create reader for topic: " + name);
        Topic* topic = made(participant->create_topic(name, "ShapeType", TOPIC_QOS_DEFAULT), "topic");
        TopicDescription* read_from = topic;
        if (!filter.empty()) {
            read_from = made(participant->create_contentfilteredtopic(name + "_filtered", topic, filter, {}),
                    "content filtered topic");
        }
        news.push_back(std::make_unique<News>(name));
        readers.emplace_back(name, made(subscriber->create_datareader(read_from, qos, news.back().get()), "reader"));
    }
    const int64_t iterations = options.number("--num-iterations", INT64_MAX);
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
        for (const auto& [name, reader] : readers) {
            read(options, name, reader, type);
        }
        pause(options, "--read-period", 100);
    }
    participant->delete_contained_entities();
}

void run(const Options& options)
{
    refuse_what_is_missing(options);
    auto factory = DomainParticipantFactory::get_instance();
    DomainParticipantQos qos = factory->get_default_participant_qos();
    // UDP alone: no shared memory.
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(std::make_shared<rtps::UDPv4TransportDescriptor>());
    const auto domain = static_cast<uint32_t>(options.number("-d", 0));
    DomainParticipant* participant = made(factory->create_participant(domain, qos), "participant");
    const DynamicType::_ref_type type = shape_type();
    TypeSupport(new ShapeSupport(type)).register_type(participant);
    name_type(factory->type_object_registry(), type);
    (options.has("-P") ? publish : subscribe)(options, participant, type);
    factory->delete_participant(participant);
    say("Done.");
}

} // namespace

extern "C" int32_t fast_shapes(int32_t count, const char* const* words)
{
    try {
        run(Options(count, words));
        return 0;
    } catch (const NotSupported& missing) {
        say(std::string("    ") + missing.what() + " = not supported");
    } catch (const std::exception& error) {
        say(error.what());
    }
    return 1;
}
