// What the fake libraries are made of: objects laid out as TensorRT's, their virtual tables filled by our own slot numbers.
// A slot that no function was put into says so and aborts, so a call by a wrong number cannot pass a test.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "../../../native/src/method.hpp"

namespace fake {

namespace Slot = trtforge::Slot;

// FAKE_GENERATION is the number of the table: 0 is 8, 1 is 10, 2 is 11, 3 is rtx1.
constexpr int kGeneration = FAKE_GENERATION;
constexpr int kSlots = 128;

inline int place(const trtforge::AnyMethod& method) { return trtforge::kFunctions[method.row].places[kGeneration].index; }

inline const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Appends a line to the file the test reads.
inline void record(const std::string& line) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (std::FILE* file = std::fopen(setting("FAKE_CALLS"), "a")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

template <int index>
void unexpected() {
  record("unexpected call of slot " + std::to_string(index));
  std::abort();
}

// Whether a fake's type is the declared one: numbers of the same width, structures the same, pointers to the same where the table says to what.
template <class Declared, class Own>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<Declared> && std::is_pointer_v<Own>) {
    using Pointed = std::remove_cv_t<std::remove_pointer_t<Declared>>;
    return std::is_void_v<Pointed> || std::is_same_v<Pointed, std::remove_cv_t<std::remove_pointer_t<Own>>>;
  } else {
    return std::is_same_v<Declared, Own>;
  }
}
template <class Declared, class Function>
struct Stands;
template <class Function>
struct Stands<trtforge::Absent, Function> {
  static constexpr bool kFor = true;
};
// A result that nobody reads may be any.
template <class Result, class... Taken, class Own, class Self, class... OwnTaken>
struct Stands<Result(Taken...), Own (*)(Self, OwnTaken...)> {
  static constexpr bool kFor = (std::is_void_v<Result> || alike<Result, Own>()) && (alike<Taken, OwnTaken>() && ...);
};

class Table {
 public:
  Table() { fill(std::make_integer_sequence<int, kSlots>()); }
  // A function that is not as this generation declares it does not compile.
  template <class... Types, class Function>
  Table& put(const trtforge::Method<Types...>& method, Function function) {
    static_assert(Stands<std::tuple_element_t<kGeneration, std::tuple<Types...>>, Function>::kFor, "The fake has other parameters, or another result, than the function it stands for.");
    if (place(method) >= 0) slots_[place(method)] = reinterpret_cast<void*>(function);
    return *this;
  }
  Table& put(int index, void* function) {
    slots_[index] = function;
    return *this;
  }
  void** slots() { return slots_; }

 private:
  template <int... indices>
  void fill(std::integer_sequence<int, indices...>) {
    ((slots_[indices] = reinterpret_cast<void*>(&unexpected<indices>)), ...);
  }
  void* slots_[kSlots];
};

// The object that does the work; `self` of every fake function.
struct Worker {
  void** table;
  const char* name;
  Worker* parent = nullptr;
  std::string content;
  std::int64_t number = 0;
};

// The public object: a table for its destructors, then the worker.
struct Public {
  void** table;
  Worker* worker;
};

inline void destroy(Public* object) {
  record(std::string("destroy ") + object->worker->name);
  delete object->worker;
  delete object;
}

inline Public* make(const char* name, Table& table, Worker* parent = nullptr) {
  static Table destructors = Table().put(1, reinterpret_cast<void*>(&destroy));
  record(std::string("create ") + name);
  return new Public{destructors.slots(), new Worker{table.slots(), name, parent, "", 0}};
}

template <class... Types, class... Given>
auto call(void* object, const trtforge::Method<Types...>& method, Given... given) {
  return trtforge::callVirtual(object, place(method), trtforge::declaredIn<static_cast<trtforge::Generation>(kGeneration)>(method), given...);
}

// A function of the fake libcuda.
template <class Function>
Function cuda(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, name));
}

inline void* theLogger = nullptr;
inline void say(void* logger, int severity, const std::string& message) { call(logger, Slot::ILogger_log_2, severity, message.c_str()); }

#if FAKE_GENERATION == 0
using Dims = trtforge::Dims32;
using DimsArgument = Dims;
inline const Dims& dims(const Dims& argument) { return argument; }
#else
using Dims = trtforge::Dims64;
using DimsArgument = const Dims*;
inline const Dims& dims(const Dims* argument) { return *argument; }
#endif

inline std::string shown(const Dims& shape) {
  std::string text;
  for (int i = 0; i < shape.count; ++i) text += (i == 0 ? "" : "x") + std::to_string(shape.values[i]);
  return text;
}

}  // namespace fake
