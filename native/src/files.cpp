#include "files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "failure.hpp"

namespace trtforge {

namespace {

// Linux moves at most 2 GiB a call.
constexpr std::size_t kChunk = std::size_t{1} << 30;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

Failure systemFailure(const char* code, const std::string& path, const char* what) {
  return Failure(code, path + " could not be " + what + ": " + std::strerror(errno) + ".");
}

}  // namespace

bool fileExists(const std::string& path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0;
}

std::vector<char> readFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts;
  if (file.get() < 0 || fstat(file.get(), &facts) != 0) throw systemFailure("TF_FILE_UNREADABLE", path, "read");
  std::vector<char> bytes(static_cast<std::size_t>(facts.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(file.get(), bytes.data() + done, std::min(kChunk, bytes.size() - done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw systemFailure("TF_FILE_UNREADABLE", path, "read");
    if (count == 0) throw Failure("TF_FILE_UNREADABLE", path + " became shorter while it was read.");
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

void writeFile(const std::string& path, const void* bytes, std::size_t size) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) throw systemFailure("TF_WRITE_FAILED", path, "written");
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = write(file.get(), static_cast<const char*>(bytes) + done, std::min(kChunk, size - done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw systemFailure("TF_WRITE_FAILED", path, "written");
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace trtforge
