// Types as Fast DDS tells them to others: descriptions in, the hashes of their type objects out.

#include <iostream>
#include <string>

#include "types.hpp"

extern "C" {

/// Answers descriptions until the input ends.
int fast_types()
{
    described::Types types;
    for (std::string line; std::getline(std::cin, line);) {
        types.take(line);
    }
    return 0;
}

} // extern "C"
