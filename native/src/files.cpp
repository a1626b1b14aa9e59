#include "files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "failure.hpp"

namespace trtforge {

namespace {

// Linux moves at most 2 GiB a call.
constexpr std::size_t kChunk = std::size_t{1} << 30;

Failure systemFailure(const char* code, const std::string& path, const char* what) {
  return Failure(code, path + " could not be " + what + ": " + std::strerror(errno) + ".");
}

}  // namespace

bool fileExists(const std::string& path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0;
}

Descriptor::~Descriptor() {
  if (value_ >= 0) close(value_);
}

InputFile::InputFile(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), opened_(facts()) {
  // Of the file, for both ways to read it: madvise of a mapping made large copies, which take pages in turns, ten times
  // slower.
  posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

InputFile::~InputFile() {
  if (mapped_ != nullptr) munmap(mapped_, size());
}

struct stat InputFile::facts() const {
  struct stat now;
  if (descriptor_.get() < 0 || fstat(descriptor_.get(), &now) != 0)
    throw systemFailure("TF_FILE_UNREADABLE", path_, "read");
  return now;
}

void InputFile::read(void* to, std::size_t bytes, std::size_t from) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t count = pread(descriptor_.get(), static_cast<char*>(to) + done, std::min(kChunk, bytes - done),
                                static_cast<off_t>(from + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw systemFailure("TF_FILE_UNREADABLE", path_, "read");
    if (count == 0) throw Failure("TF_FILE_UNREADABLE", path_ + " became shorter while it was read.");
    done += static_cast<std::size_t>(count);
  }
}

const void* InputFile::map(Pages pages) {
  const int flags = MAP_PRIVATE | (pages == Pages::kNow ? MAP_POPULATE : 0);
  void* mapped = mmap(nullptr, size(), PROT_READ, flags, descriptor_.get(), 0);
  if (mapped == MAP_FAILED) throw systemFailure("TF_FILE_UNREADABLE", path_, "mapped");
  mapped_ = mapped;
  return mapped_;
}

void InputFile::checkUnchanged() const {
  const struct stat now = facts();
  if (now.st_size == opened_.st_size && now.st_mtim.tv_sec == opened_.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == opened_.st_mtim.tv_nsec)
    return;
  throw Failure("TF_FILE_UNREADABLE", path_ + " was written to while it was read.");
}

std::vector<char> readFile(const std::string& path) {
  const InputFile file(path);
  std::vector<char> bytes(file.size());
  file.read(bytes.data(), bytes.size(), 0);
  return bytes;
}

std::optional<std::size_t> dropFromCache(const std::string& path) {
  InputFile file(path);
  // Pages that are not on the disk yet would stay.
  fsync(file.descriptor());
  posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  // To others mincore reports every page as resident.
  if (file.owner() != geteuid() && access(path.c_str(), W_OK) != 0) return std::nullopt;
  if (file.size() == 0) return 0;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((file.size() + page - 1) / page);
  if (mincore(const_cast<void*>(file.map(InputFile::Pages::kLater)), file.size(), pages.data()) != 0)
    return std::nullopt;
  const auto stayed = std::count_if(pages.begin(), pages.end(), [](unsigned char one) { return (one & 1) != 0; });
  return std::min(file.size(), static_cast<std::size_t>(stayed) * page);
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
