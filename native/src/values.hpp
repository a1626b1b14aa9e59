// Values between JavaScript and C++. Reading throws TF_INTERNAL for a value of another type;
// src/addon/addon.ts types them all.
#pragma once
#include <napi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "failure.hpp"

namespace trtforge::js {

class Reader {
 public:
  explicit Reader(Napi::Value value) : value_(value) {}

  Reader operator[](const char* key) const;
  std::vector<Reader> elements() const;
  std::string text() const;
  // Empty for null.
  std::string textOrEmpty() const;
  std::int64_t integer() const;
  double number() const;
  bool boolean() const;
  // Undefined too.
  bool isNull() const { return value_.IsNull() || value_.IsUndefined(); }
  Napi::Function function() const;
  std::vector<std::int64_t> integers() const;
  std::vector<std::string> texts() const;
  const Napi::Value& value() const { return value_; }

 private:
  Napi::Value value_;
};

// An object, field by field.
class Writer {
 public:
  explicit Writer(Napi::Env env) : object_(Napi::Object::New(env)) {}

  template <class Value>
  Writer& set(const char* key, const Value& value) {
    object_.Set(key, Napi::Value::From(object_.Env(), value));
    return *this;
  }
  Writer& set(const char* key, bool flag) { return set(key, Napi::Boolean::New(object_.Env(), flag)); }
  // null for an empty text.
  Writer& setOrNull(const char* key, const std::string& text) {
    return text.empty() ? set(key, object_.Env().Null()) : set(key, text);
  }
  Napi::Object value() const { return object_; }

 private:
  Napi::Object object_;
};

template <class Item, class Convert>
Napi::Array array(Napi::Env env, const std::vector<Item>& items, Convert convert) {
  auto list = Napi::Array::New(env, items.size());
  for (std::size_t i = 0; i < items.size(); ++i) list.Set(static_cast<std::uint32_t>(i), convert(items[i]));
  return list;
}
// Of numbers or texts.
template <class Item>
Napi::Array array(Napi::Env env, const std::vector<Item>& items) {
  return array(env, items, [env](const Item& item) { return Napi::Value::From(env, item); });
}

// A new ArrayBuffer with a copy of the bytes.
Napi::ArrayBuffer arrayBuffer(Napi::Env env, const std::vector<char>& bytes);
// Where the bytes of a typed array or DataView lie. Throws TF_INTERNAL for another value.
struct Bytes {
  void* data = nullptr;
  std::size_t size = 0;
};
Bytes bytesOf(const Napi::Value& view);

// Where a thread of JavaScript is being ended it takes neither values nor exceptions, and node-addon-api's own way to
// pass them on would throw from C callbacks.
void resolve(const Napi::Promise::Deferred& deferred, const Napi::Value& value) noexcept;
// With an Error that carries `code` and `details`; src/addon/native-job.ts makes a TrtforgeError of it.
void reject(const Napi::Promise::Deferred& deferred, const Failure& failure) noexcept;
void raise(Napi::Env env, const Failure& failure) noexcept;
void raise(const Napi::Error& error) noexcept;

// Every exported function: a Failure becomes a JavaScript exception.
template <Napi::Value (*function)(const Napi::CallbackInfo&)>
Napi::Value exported(const Napi::CallbackInfo& info) {
  try {
    return function(info);
  } catch (const Napi::Error& error) {
    raise(error);
  } catch (const Failure& failure) {
    raise(info.Env(), failure);
  } catch (const std::exception& exception) {
    raise(info.Env(), Failure("TF_INTERNAL", exception.what()));
  }
  return Napi::Value();
}

template <Napi::Value (*function)(const Napi::CallbackInfo&)>
void add(Napi::Object& exports, const char* name) {
  exports.Set(name, Napi::Function::New<exported<function>>(exports.Env(), name));
}

}  // namespace trtforge::js
