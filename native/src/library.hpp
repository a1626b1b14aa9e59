// A library of TensorRT, loaded at run time and never unloaded (unloading one crashes at exit), and calls through its
// virtual tables.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

#include "failure.hpp"
#include "method.hpp"

namespace trtforge {

// A shared library by path. `symbol` throws TF_LIBRARY_LOAD_FAILED where the library lacks it.
class SharedLibrary {
 public:
  // Throws TF_LIBRARY_LOAD_FAILED with the loader's own text.
  static SharedLibrary open(const std::string& path);

  void* find(const char* name) const noexcept;
  template <class Function>
  Function symbol(const char* name) const {
    return reinterpret_cast<Function>(required(name));
  }
  const std::string& path() const { return path_; }
  // The text after `prefix` of the first exported name that starts so; empty where there is none.
  std::string exportedNameAfter(const char* prefix) const;

 private:
  SharedLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  void* required(const char* name) const;

  std::string path_;
  void* handle_;
};

// libnvinfer or libtensorrt_rtx: its version, and which table its objects follow.
class InferenceLibrary {
 public:
  explicit InferenceLibrary(const std::string& path);

  const SharedLibrary& shared() const { return shared_; }
  Generation generation() const { return generation_; }
  bool rtx() const { return rtx_; }
  std::int32_t code() const { return code_; }
  // `10.6.0.26`
  const std::string& version() const { return version_; }
  // `TensorRT 10.6.0.26`
  std::string name() const;
  // Throws TF_LIBRARY_UNSUPPORTED where there is no table for it.
  void requireTable() const;

  bool has(const AnyMethod& method) const noexcept;
  // Calls a function of an object's own table. Throws TF_LIBRARY_TOO_OLD, naming the version needed, instead of ever
  // calling what is not there.
  template <class... Types, class... Given>
  auto call(void* object, const Method<Types...>& method, Given... given) const {
    return call(object, agreed(method), given...);
  }
  template <class Type, class... Given>
  auto call(void* object, const TypedMethod<Type>& method, Given... given) const {
    return callVirtual(object, place(method, method.generations), method, given...);
  }

 private:
  // The place of a function in its class's table, where one of these generations is loaded.
  int place(const AnyMethod& method, unsigned generations) const;

  SharedLibrary shared_;
  std::int32_t code_;
  bool rtx_;
  Generation generation_ = Generation::kUnknown;
  std::int32_t comparable_ = 0;
  std::string version_;
};

// A public object of TensorRT: its own table (only destructors are called there), then the pointer to the object that
// does the work.
class Facade {
 public:
  Facade() = default;
  Facade(const InferenceLibrary& library, void* object) : library_(&library), object_(object) {}

  // False too for an object with nothing behind it, as 10.6 hands out on a machine without a GPU.
  explicit operator bool() const { return object_ != nullptr && static_cast<void**>(object_)[1] != nullptr; }
  void* get() const { return object_; }

  template <class Function, class... Given>
  auto call(const Function& method, Given... given) const {
    return library_->call(static_cast<void**>(object_)[1], method, given...);
  }

 protected:
  const InferenceLibrary* library_ = nullptr;
  void* object_ = nullptr;
};

// A facade that this side owns: deleted through the second destructor of its own table.
class Owned : public Facade {
 public:
  Owned() = default;
  Owned(const InferenceLibrary& library, void* object) : Facade(library, object) {}
  Owned(Owned&& other) noexcept : Facade(other) { other.object_ = nullptr; }
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      library_ = other.library_;
      object_ = other.object_;
      other.object_ = nullptr;
    }
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }
  // Lets it be without deleting it.
  void release() { object_ = nullptr; }
  void reset() {
    if (object_ != nullptr) callVirtual(object_, 1, agreed(Slot::IHostMemory_destroy_deleting_0));
    object_ = nullptr;
  }
};

}  // namespace trtforge
