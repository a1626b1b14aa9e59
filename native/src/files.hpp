// Files by path. Failures name the file: TF_FILE_UNREADABLE, TF_WRITE_FAILED.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace trtforge {

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

// A file that is read by place, or mapped.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int descriptor() const { return descriptor_.get(); }
  uid_t owner() const { return opened_.st_uid; }
  std::size_t size() const { return static_cast<std::size_t>(opened_.st_size); }
  // Exactly so many bytes.
  void read(void* to, std::size_t bytes, std::size_t from) const;
  enum class Pages { kNow, kLater };
  // The whole file, for as long as this lives; its pages are read at once or as they are touched. Not for an empty one.
  const void* map(Pages pages);
  // Fails where somebody wrote to the file since it was opened.
  void checkUnchanged() const;

 private:
  struct stat facts() const;

  const std::string path_;
  const Descriptor descriptor_;
  const struct stat opened_;
  void* mapped_ = nullptr;
};

// False where there is no such file.
bool fileExists(const std::string& path);
std::vector<char> readFile(const std::string& path);
// Asks the kernel to forget the file's pages, and counts the bytes that stay in memory: a process that maps the file
// keeps them. No number where the kernel does not show it (to users who may not write to the file).
std::optional<std::size_t> dropFromCache(const std::string& path);
// Replaces the content of the file in place, so that a pending file someone else holds open stays the same file.
void writeFile(const std::string& path, const void* bytes, std::size_t size);

}  // namespace trtforge
