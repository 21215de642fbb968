// A topic whose type Fast DDS announces and answers questions about: unlike in the measurements, its type service is on.
//
// Of standard input, descriptions of types as `types.hpp` has them come first, then one of
//   write TOPIC NAME     a writer of the named type, which writes ten times a second
//   read TOPIC NAME      a reader of it
// and the end of the input ends the program. It prints `ready`, and `matched COUNT` when that changes. For each writer that it discovers
// it prints `discovered TYPE`, and behind that `described` if it knows the writer's type information or `plain` if not. A reader prints
// `sample` with the JSON of each sample. In what is written each integer is its member's id and one, each floating-point number its
// member's id and a half, each boolean true and each string its member's name; other members have the default of their type.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicData.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicDataFactory.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicPubSubType.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicTypeMember.hpp>
#include <fastdds/dds/xtypes/utils.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>

#include "types.hpp"

using namespace eprosima::fastdds;
using namespace eprosima::fastdds::dds;

namespace {

using described::Refused;
using described::Type;
using Data = DynamicData::_ref_type;

constexpr std::chrono::milliseconds INTERVAL {100};

/// Prints a line whole, whichever thread says it.
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
        throw Refused(std::string("no ") + what);
    }
    return entity;
}

/// Gives a value to each member that is a number, a boolean, a string or a structure of them.
void fill(const Data& data, const Type& type)
{
    DynamicTypeMembersById members;
    type->get_all_members(members);
    for (const auto& [id, member] : members) {
        auto descriptor = traits<MemberDescriptor>::make_shared();
        member->get_descriptor(descriptor);
        const auto number = static_cast<int32_t>(id) + 1;
        switch (descriptor->type()->get_kind()) {
            case TK_BOOLEAN: data->set_boolean_value(id, true); break;
            case TK_BYTE: data->set_byte_value(id, static_cast<uint8_t>(number)); break;
            case TK_INT8: data->set_int8_value(id, static_cast<int8_t>(number)); break;
            case TK_UINT8: data->set_uint8_value(id, static_cast<uint8_t>(number)); break;
            case TK_INT16: data->set_int16_value(id, static_cast<int16_t>(number)); break;
            case TK_UINT16: data->set_uint16_value(id, static_cast<uint16_t>(number)); break;
            case TK_INT32: data->set_int32_value(id, number); break;
            case TK_UINT32: data->set_uint32_value(id, static_cast<uint32_t>(number)); break;
            case TK_INT64: data->set_int64_value(id, number); break;
            case TK_UINT64: data->set_uint64_value(id, static_cast<uint64_t>(number)); break;
            case TK_FLOAT32: data->set_float32_value(id, static_cast<float>(id) + 0.5F); break;
            case TK_FLOAT64: data->set_float64_value(id, static_cast<double>(id) + 0.5); break;
            case TK_STRING8: data->set_string_value(id, member->get_name().to_string()); break;
            case TK_STRUCTURE: {
                Data inner = data->loan_value(id);
                fill(inner, descriptor->type());
                data->return_loaned_value(inner);
                break;
            }
            default: break;
        }
    }
}

/// Says what each writer that is discovered announces of its type. Fast DDS ignores TYPE_INFORMATION of other vendors (`WriterProxyData`).
class Discovery : public DomainParticipantListener
{
public:

    void on_data_writer_discovery(
            DomainParticipant*,
            rtps::WriterDiscoveryStatus reason,
            const PublicationBuiltinTopicData& info,
            bool& should_be_ignored) override
    {
        should_be_ignored = false;
        if (reason == rtps::WriterDiscoveryStatus::DISCOVERED_WRITER) {
            say("discovered " + info.type_name.to_string() + (info.type_information.assigned() ? " described" : " plain"));
        }
    }
};

/// A topic of a participant that tells and asks for types.
class Peer
{
public:

    Peer(uint32_t domain, const std::string& address, const std::string& topic)
        : name_(topic)
    {
        DomainParticipantQos qos = DomainParticipantFactory::get_instance()->get_default_participant_qos();
        qos.transport().use_builtin_transports = false;
        auto transport = std::make_shared<rtps::UDPv4TransportDescriptor>();
        transport->interfaceWhiteList.push_back(address);
        qos.transport().user_transports.push_back(transport);
        // As shipped: both objects of each type. It is named since a file of settings may say otherwise.
        qos.properties().properties().emplace_back(parameter_policy_type_propagation, "enabled");
        auto factory = DomainParticipantFactory::get_instance();
        participant_ = made(factory->create_participant(domain, qos, &discovery_, StatusMask::none()), "participant");
    }

    ~Peer()
    {
        participant_->delete_contained_entities();
        DomainParticipantFactory::get_instance()->delete_participant(participant_);
    }

    void write(const Type& type, const std::atomic<bool>& over)
    {
        Publisher* publisher = made(participant_->create_publisher(PUBLISHER_QOS_DEFAULT), "publisher");
        DataWriterQos qos = publisher->get_default_datawriter_qos();
        qos.data_sharing().off();
        DataWriter* writer = made(publisher->create_datawriter(topic(type), qos), "writer");
        Data data = DynamicDataFactory::get_instance()->create_data(type);
        fill(data, type);
        say("ready");
        for (int32_t known = 0; !over; std::this_thread::sleep_for(INTERVAL)) {
            PublicationMatchedStatus status;
            writer->get_publication_matched_status(status);
            count(known, status.current_count);
            writer->write(&data);
        }
    }

    void read(const Type& type, const std::atomic<bool>& over)
    {
        Subscriber* subscriber = made(participant_->create_subscriber(SUBSCRIBER_QOS_DEFAULT), "subscriber");
        DataReaderQos qos = subscriber->get_default_datareader_qos();
        qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
        qos.data_sharing().off();
        DataReader* reader = made(subscriber->create_datareader(topic(type), qos), "reader");
        Data data = DynamicDataFactory::get_instance()->create_data(type);
        say("ready");
        for (int32_t known = 0; !over; std::this_thread::sleep_for(INTERVAL)) {
            SubscriptionMatchedStatus status;
            reader->get_subscription_matched_status(status);
            count(known, status.current_count);
            SampleInfo info;
            while (reader->take_next_sample(&data, &info) == RETCODE_OK) {
                if (info.valid_data) {
                    print(data);
                }
            }
        }
    }

private:

    Topic* topic(const Type& type)
    {
        TypeSupport support(new DynamicPubSubType(type));
        const std::string of = type->get_name().to_string();
        if (support.register_type(participant_, of) != RETCODE_OK) {
            throw Refused("the type is not registered");
        }
        return made(participant_->create_topic(name_, of, TOPIC_QOS_DEFAULT), "topic");
    }

    static void count(int32_t& known, int32_t now)
    {
        if (now != known) {
            known = now;
            say("matched " + std::to_string(known));
        }
    }

    static void print(const Data& data)
    {
        std::ostringstream text;
        json_serialize(data, DynamicDataJsonFormat::EPROSIMA, text);
        std::string line = text.str();
        std::replace(line.begin(), line.end(), '\n', ' ');
        say("sample " + line);
    }

    const std::string name_;
    Discovery discovery_;
    DomainParticipant* participant_;
};

/// Takes descriptions and the line that says what to do, and runs until the input ends.
void run(uint32_t domain, const std::string& address)
{
    described::Types types;
    std::string line, word, topic, name;
    while (std::getline(std::cin, line)) {
        std::istringstream words {line};
        words >> word >> topic >> name;
        if (word == "write" || word == "read") {
            break;
        }
        types.take(line);
    }
    Peer peer(domain, address, topic);
    std::atomic<bool> over {false};
    std::thread end([&over]() {
                for (std::string ignored; std::getline(std::cin, ignored);) {
                }
                over = true;
            });
    try {
        const Type type = types.named(name);
        word == "write" ? peer.write(type, over) : peer.read(type, over);
    } catch (const std::exception& error) {
        say(std::string("refused: ") + error.what());
    }
    end.join();
}

} // namespace

extern "C" {

/// Writes or reads a topic of the domain as the input says, by the interface with this IPv4 address; 0 when it could.
int fast_topic(uint32_t domain, const char* address)
{
    try {
        run(domain, address);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}

} // extern "C"
