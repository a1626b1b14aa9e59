// ONNX Runtime's C interface: functions of libonnxruntime called by their places in its table (native/abi/ort.json),
// never past what its version has.
#pragma once
#include <string>
#include <utility>

#include "library.hpp"
#include "ort_slots.h"

namespace trtforge::ort {

class Library {
 public:
  // Loads a library once, for ever, with the environment that its sessions share. Throws TF_LIBRARY_LOAD_FAILED,
  // TF_LIBRARY_TOO_OLD.
  static const Library& at(const std::string& path);

  // `1.30.0`
  const std::string& version() const { return version_; }
  std::string buildInfo() const { return call(Slot::GetBuildInfoString); }
  void* environment() const { return environment_; }
  bool has(const AnyFunction& function) const { return minor_ >= function.since; }

  // Throws TF_LIBRARY_TOO_OLD for a function that the loaded version does not have.
  template <class Result, class... Taken, class... Given>
  Result call(const Function<Result(Taken...)>& function, Given... given) const {
    static_assert((kPasses<Given, Taken> && ...), "An argument is not of the type that the function takes.");
    return reinterpret_cast<Result (*)(Taken...)>(place(function))(static_cast<Taken>(given)...);
  }
  // For functions that return a status. Throws TF_ONNXRUNTIME_FAILED with ONNX Runtime's text.
  template <class... Taken, class... Given>
  void check(const Function<void*(Taken...)>& function, Given... given) const {
    if (void* status = call(function, given...)) fail(status);
  }
  // The object that a function makes, its last parameter.
  template <class... Taken, class... Given>
  void* made(const Function<void*(Taken...)>& function, Given... given) const {
    void* object = nullptr;
    check(function, given..., &object);
    return object;
  }

 private:
  explicit Library(const std::string& path);
  void* place(const AnyFunction& function) const;
  [[noreturn]] void fail(void* status) const;

  SharedLibrary shared_;
  std::string version_;
  int minor_ = 0;
  void* const* table_ = nullptr;
  void* environment_ = nullptr;
};

// An object of ONNX Runtime, released with the function that is for its kind.
class Owned {
 public:
  Owned() = default;
  Owned(const Library& library, const Function<void(const void*)>& release, void* object)
      : library_(&library), release_(&release), object_(object) {}
  Owned(Owned&& other) noexcept
      : library_(other.library_), release_(other.release_), object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    reset();
    library_ = other.library_;
    release_ = other.release_;
    object_ = std::exchange(other.object_, nullptr);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }
  void reset() {
    if (object_ != nullptr) library_->call(*release_, std::exchange(object_, nullptr));
  }
  void* get() const { return object_; }

 private:
  const Library* library_ = nullptr;
  const Function<void(const void*)>* release_ = nullptr;
  void* object_ = nullptr;
};

}  // namespace trtforge::ort
