// Types as Fast DDS tells them to others: descriptions in, the hashes of their type objects out.
//
// A description is a head with its parts below, one a line; words are apart by a space:
//   alias NAME TYPE
//   enumeration NAME HOLDER            literal NAME VALUE
//   bitmask NAME BITS                  flag NAME POSITION
//   bitset NAME COUNT BITS...          field NAME POSITION HOLDER
//   structure NAME EXTENSIBILITY NESTED BASE      member NAME ID TRY FLAGS TYPE
//   union NAME EXTENSIBILITY NESTED TYPE          case NAME ID TRY FLAGS COUNT LABEL... TYPE
// TYPE is a primitive type of IDL with `_` for spaces, `string BOUND`, `wstring BOUND`, `sequence BOUND TYPE`,
// `array DIMENSIONS BOUND... TYPE`, `map BOUND TYPE TYPE` or `named NAME`; a bound of 0 is none, a base of `-` is none.
// FLAGS are letters, or `-`. After the last part comes `end`, and then the answer, `NAME MINIMAL COMPLETE`, or `NAME refused`.

#pragma once

#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicType.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicTypeBuilder.hpp>
#include <fastdds/dds/xtypes/dynamic_types/DynamicTypeBuilderFactory.hpp>
#include <fastdds/dds/xtypes/dynamic_types/MemberDescriptor.hpp>
#include <fastdds/dds/xtypes/dynamic_types/TypeDescriptor.hpp>
#include <fastdds/dds/xtypes/type_representation/ITypeObjectRegistry.hpp>
#include <fastdds/dds/xtypes/type_representation/TypeObject.hpp>

/// Types by their descriptions.
namespace described {

using namespace eprosima::fastdds::dds;

using Type = DynamicType::_ref_type;
using Builder = DynamicTypeBuilder::_ref_type;
using Words = std::istringstream;

/// What Fast DDS does not take.
struct Refused : std::runtime_error
{
    using std::runtime_error::runtime_error;
};

template<typename T>
T word(Words& words)
{
    T taken {};
    if (!(words >> taken)) {
        throw Refused("a word is missing in: " + words.str());
    }
    return taken;
}

inline const std::map<std::string, TypeKind> PRIMITIVES {
    {"boolean", TK_BOOLEAN}, {"octet", TK_BYTE}, {"int8", TK_INT8}, {"uint8", TK_UINT8}, {"short", TK_INT16},
    {"unsigned_short", TK_UINT16}, {"long", TK_INT32}, {"unsigned_long", TK_UINT32}, {"long_long", TK_INT64},
    {"unsigned_long_long", TK_UINT64}, {"float", TK_FLOAT32}, {"double", TK_FLOAT64}, {"long_double", TK_FLOAT128},
    {"char", TK_CHAR8}, {"wchar", TK_CHAR16}};

inline const std::set<std::string> PARTS {"literal", "flag", "field", "member", "case"};

class Types
{
public:

    /// The type of a description that was answered.
    ///
    /// Throws `Refused` where there is none of the name.
    Type named(const std::string& name) const
    {
        const auto found = named_.find(name);
        if (found == named_.end()) {
            throw Refused("there is no " + name);
        }
        return found->second;
    }

    /// Takes one line; at the end of a description, answers.
    void take(const std::string& line)
    {
        Words words {line};
        std::string head;
        words >> head;
        if (head == "end") {
            answer();
            return;
        }
        try {
            if (PARTS.count(head) == 0) {
                begin(head, words);
            } else if (builder_) {
                add(head, words);
            }
        } catch (const std::exception& error) {
            std::cerr << line << ": " << error.what() << std::endl;
            builder_.reset();
        }
    }

private:

    static Type built(const Builder& builder)
    {
        Type type = builder ? builder->build() : Type {};
        if (!type) {
            throw Refused("the type is not consistent");
        }
        return type;
    }

    static uint32_t bound(Words& words)
    {
        const uint32_t bound = word<uint32_t>(words);
        return bound == 0 ? std::numeric_limits<uint32_t>::max() : bound;
    }

    Type type(Words& words) const
    {
        const auto factory = DynamicTypeBuilderFactory::get_instance();
        const std::string kind = word<std::string>(words);
        const auto primitive = PRIMITIVES.find(kind);
        if (primitive != PRIMITIVES.end()) {
            return factory->get_primitive_type(primitive->second);
        }
        if (kind == "string") {
            return built(factory->create_string_type(bound(words)));
        }
        if (kind == "wstring") {
            return built(factory->create_wstring_type(bound(words)));
        }
        if (kind == "sequence") {
            const uint32_t most = bound(words);
            return built(factory->create_sequence_type(type(words), most));
        }
        if (kind == "array") {
            BoundSeq bounds(word<size_t>(words));
            for (auto& one : bounds) {
                one = word<uint32_t>(words);
            }
            return built(factory->create_array_type(type(words), bounds));
        }
        if (kind == "map") {
            const uint32_t most = bound(words);
            const Type key = type(words);
            return built(factory->create_map_type(key, type(words), most));
        }
        if (kind == "named") {
            return named(word<std::string>(words));
        }
        throw Refused("no kind of type: " + kind);
    }

    void begin(const std::string& head, Words& words)
    {
        builder_.reset();
        name_ = word<std::string>(words);
        holder_ = {};
        auto descriptor = traits<TypeDescriptor>::make_shared();
        descriptor->name(name_.c_str());
        if (head == "alias") {
            descriptor->kind(TK_ALIAS);
            descriptor->base_type(type(words));
        } else if (head == "enumeration") {
            descriptor->kind(TK_ENUM);
            holder_ = type(words);
        } else if (head == "bitmask") {
            descriptor->kind(TK_BITMASK);
            descriptor->element_type(DynamicTypeBuilderFactory::get_instance()->get_primitive_type(TK_BOOLEAN));
            descriptor->bound().push_back(word<uint32_t>(words));
        } else if (head == "bitset") {
            descriptor->kind(TK_BITSET);
            for (auto fields = word<size_t>(words); fields > 0; --fields) {
                descriptor->bound().push_back(word<uint32_t>(words));
            }
        } else if (head == "structure" || head == "union") {
            descriptor->kind(head == "union" ? TK_UNION : TK_STRUCTURE);
            const std::string extensibility = word<std::string>(words);
            descriptor->extensibility_kind(extensibility == "final" ? ExtensibilityKind::FINAL
                    : extensibility == "mutable" ? ExtensibilityKind::MUTABLE : ExtensibilityKind::APPENDABLE);
            descriptor->is_nested(word<int>(words) != 0);
            if (head == "union") {
                descriptor->discriminator_type(type(words));
            } else {
                const std::string base = word<std::string>(words);
                if (base != "-") {
                    descriptor->base_type(named(base));
                }
            }
        } else {
            throw Refused("no kind of definition");
        }
        builder_ = DynamicTypeBuilderFactory::get_instance()->create_type(descriptor);
    }

    void add(const std::string& head, Words& words)
    {
        auto member = traits<MemberDescriptor>::make_shared();
        member->name(word<std::string>(words).c_str());
        if (head == "literal") {
            member->type(holder_);
            member->default_value(word<std::string>(words));
        } else if (head == "flag") {
            member->type(DynamicTypeBuilderFactory::get_instance()->get_primitive_type(TK_BOOLEAN));
            member->id(word<uint32_t>(words));
        } else if (head == "field") {
            member->id(word<uint32_t>(words));
            member->type(type(words));
        } else {
            member->id(word<uint32_t>(words));
            const std::string failure = word<std::string>(words);
            member->try_construct_kind(failure == "trim" ? TryConstructKind::TRIM
                    : failure == "default" ? TryConstructKind::USE_DEFAULT : TryConstructKind::DISCARD);
            const std::string flags = word<std::string>(words);
            const auto has = [&flags](char flag) {
                        return flags.find(flag) != std::string::npos;
                    };
            member->is_key(has('k'));
            member->is_optional(has('o'));
            member->is_must_understand(has('m'));
            member->is_shared(has('x'));
            member->is_default_label(has('d'));
            if (head == "case") {
                UnionCaseLabelSeq labels(word<size_t>(words));
                for (auto& label : labels) {
                    label = word<int32_t>(words);
                }
                member->label(labels);
            }
            member->type(type(words));
        }
        if (builder_->add_member(member) != RETCODE_OK) {
            throw Refused("the member is not consistent");
        }
    }

    void answer()
    {
        try {
            const Type type = built(builder_);
            xtypes::TypeIdentifierPair pair;
            auto& registry = DomainParticipantFactory::get_instance()->type_object_registry();
            registry.register_typeobject_w_dynamic_type(type, pair);
            const bool in_order = pair.type_identifier1()._d() == xtypes::EK_MINIMAL;
            const auto& minimal = in_order ? pair.type_identifier1() : pair.type_identifier2();
            const auto& complete = in_order ? pair.type_identifier2() : pair.type_identifier1();
            if (minimal._d() != xtypes::EK_MINIMAL || complete._d() != xtypes::EK_COMPLETE) {
                throw Refused("it has no two objects");
            }
            named_[name_] = type;
            std::cout << name_ << ' ' << hex(minimal) << ' ' << hex(complete) << std::endl;
        } catch (const std::exception& error) {
            std::cerr << name_ << ": " << error.what() << std::endl;
            std::cout << name_ << " refused" << std::endl;
        }
        builder_.reset();
    }

    static std::string hex(const xtypes::TypeIdentifier& identifier)
    {
        static const char* const DIGITS = "0123456789abcdef";
        std::string out;
        for (const uint8_t byte : identifier.equivalence_hash()) {
            out += DIGITS[byte >> 4];
            out += DIGITS[byte & 0xf];
        }
        return out;
    }

    std::map<std::string, Type> named_;
    std::string name_;
    Builder builder_;
    Type holder_;
};

} // namespace described
