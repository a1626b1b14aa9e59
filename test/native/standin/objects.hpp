// What the stand-in libraries are made of: objects laid out as TensorRT's, their virtual tables filled by our own slot numbers.
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

#include "slots.h"

namespace standin {

using trtforge::Slot;

// STANDIN_GENERATION is the number of the table: 0 is 8, 1 is 10, 2 is 11, 3 is rtx1.
constexpr int kGeneration = STANDIN_GENERATION;
constexpr int kSlots = 128;

inline int place(Slot slot) { return trtforge::kFunctions[static_cast<int>(slot)].places[kGeneration].index; }

inline const char* wish(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Appends a line to the file the test reads.
inline void record(const std::string& line) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (std::FILE* file = std::fopen(wish("STANDIN_CALLS"), "a")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

template <int index>
void unexpected() {
  record("unexpected call of slot " + std::to_string(index));
  std::abort();
}

class Table {
 public:
  Table() { fill(std::make_integer_sequence<int, kSlots>()); }
  template <class Function>
  Table& put(Slot slot, Function function) {
    if (place(slot) >= 0) slots_[place(slot)] = reinterpret_cast<void*>(function);
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

// The object that does the work; `self` of every stand-in function.
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

template <class Result, class... Arguments>
Result call(void* object, Slot slot, Arguments... arguments) {
  auto function = reinterpret_cast<Result (*)(void*, Arguments...)>((*static_cast<void***>(object))[place(slot)]);
  return function(object, arguments...);
}

// A function of the stand-in libcuda.
template <class Function>
Function cuda(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, name));
}

inline void* theLogger = nullptr;
inline void say(void* logger, int severity, const std::string& message) { call<void>(logger, Slot::ILogger_log_2, severity, message.c_str()); }

#if STANDIN_GENERATION == 0
struct Dims {
  std::int32_t count;
  std::int32_t values[8];
};
using DimsArgument = Dims;
inline const Dims& dims(const Dims& argument) { return argument; }
#else
struct Dims {
  std::int32_t count;
  std::int64_t values[8];
};
using DimsArgument = const Dims*;
inline const Dims& dims(const Dims* argument) { return *argument; }
#endif

inline std::string shown(const Dims& shape) {
  std::string text;
  for (int i = 0; i < shape.count; ++i) text += (i == 0 ? "" : "x") + std::to_string(shape.values[i]);
  return text;
}

}  // namespace standin
