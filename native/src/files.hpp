// Files by path. Failures name the file: TF_FILE_UNREADABLE, TF_WRITE_FAILED.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace trtforge {

// False where there is no such file.
bool fileExists(const std::string& path);
std::vector<char> readFile(const std::string& path);
// Replaces the content of the file in place, so that a pending file someone else holds open stays the same file.
void writeFile(const std::string& path, const void* bytes, std::size_t size);

}  // namespace trtforge
