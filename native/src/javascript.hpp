// Values between JavaScript and C++. Reading throws TF_INTERNAL for a value of another type; src/tensorrt/addon/addon.ts types them all.
#pragma once
#include <node_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "failure.hpp"

namespace trtforge::js {

// A pending JavaScript exception, or a call of Node-API that failed.
void check(napi_env env, napi_status status);

class Reader {
 public:
  Reader(napi_env env, napi_value value) : env_(env), value_(value) {}

  Reader operator[](const char* key) const;
  std::vector<Reader> elements() const;
  std::string text() const;
  // Empty for null.
  std::string textOrEmpty() const;
  std::int64_t integer() const;
  double number() const;
  bool boolean() const;
  // Undefined too.
  bool isNull() const;
  std::vector<std::int64_t> integers() const;
  std::vector<std::string> texts() const;
  napi_value value() const { return value_; }

 private:
  napi_env env_;
  napi_value value_;
};

class Writer {
 public:
  explicit Writer(napi_env env) : env_(env) { check(env, napi_create_object(env, &value_)); }

  Writer& set(const char* key, napi_value value);
  Writer& set(const char* key, const std::string& text);
  Writer& set(const char* key, const char* text) { return set(key, std::string(text)); }
  Writer& set(const char* key, double number);
  Writer& set(const char* key, std::int64_t number) { return set(key, static_cast<double>(number)); }
  Writer& set(const char* key, std::int32_t number) { return set(key, static_cast<double>(number)); }
  Writer& set(const char* key, bool value);
  // null for an empty text.
  Writer& setOrNull(const char* key, const std::string& text);
  napi_value value() const { return value_; }

 private:
  napi_env env_;
  napi_value value_ = nullptr;
};

napi_value array(napi_env env, const std::vector<std::int64_t>& numbers);
napi_value array(napi_env env, const std::vector<std::string>& texts);
template <class Item, class Convert>
napi_value array(napi_env env, const std::vector<Item>& items, Convert convert) {
  napi_value list;
  check(env, napi_create_array_with_length(env, items.size(), &list));
  for (std::size_t i = 0; i < items.size(); ++i) check(env, napi_set_element(env, list, static_cast<std::uint32_t>(i), convert(items[i])));
  return list;
}

napi_value nullValue(napi_env env);
// A new ArrayBuffer with a copy of the bytes.
napi_value arrayBuffer(napi_env env, const void* bytes, std::size_t size);
// Where the bytes of a typed array or DataView lie. Throws TF_INTERNAL for another value.
struct Bytes {
  void* data = nullptr;
  std::size_t size = 0;
};
Bytes bytesOf(napi_env env, napi_value view);
// Throw an Error with `code` and `details`, as src/tensorrt/addon/addon.ts turns into a TrtforgeError, or reject a promise with it; undefined where JavaScript
// makes no error any more. C++ exceptions may not leave the functions that Node.js calls.
void raise(napi_env env, const Failure& failure) noexcept;
void reject(napi_env env, napi_deferred deferred, const Failure& failure) noexcept;

}  // namespace trtforge::js
