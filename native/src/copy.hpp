// Copies of host memory that the processor will not read again.
#pragma once
#include <cstddef>

namespace trtforge {

// Past the caches where the processor can: a copy then reads once and writes once, where ordinary stores first read
// what they overwrite.
void copyPastCaches(char* to, const char* from, std::size_t bytes);

}  // namespace trtforge
