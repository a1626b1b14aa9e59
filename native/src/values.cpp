#include "values.hpp"

#include <cstring>

namespace trtforge::js {

namespace {

void expect(bool right, const char* what) {
  if (!right) throw Failure("TF_INTERNAL", std::string("The addon expects ") + what + " here.");
}

}  // namespace

Reader Reader::operator[](const char* key) const {
  expect(value_.IsObject(), "an object");
  return Reader(value_.As<Napi::Object>().Get(key));
}

std::vector<Reader> Reader::elements() const {
  expect(value_.IsArray(), "an array");
  const auto list = value_.As<Napi::Array>();
  std::vector<Reader> all;
  for (std::uint32_t i = 0; i < list.Length(); ++i) all.emplace_back(list.Get(i));
  return all;
}

std::string Reader::text() const {
  expect(value_.IsString(), "a string");
  return value_.As<Napi::String>();
}

std::string Reader::textOrEmpty() const { return isNull() ? "" : text(); }

std::int64_t Reader::integer() const {
  expect(value_.IsNumber(), "a number");
  return value_.As<Napi::Number>().Int64Value();
}

double Reader::number() const {
  expect(value_.IsNumber(), "a number");
  return value_.As<Napi::Number>().DoubleValue();
}

bool Reader::boolean() const {
  expect(value_.IsBoolean(), "a boolean");
  return value_.As<Napi::Boolean>();
}

Napi::Function Reader::function() const {
  expect(value_.IsFunction(), "a function");
  return value_.As<Napi::Function>();
}

std::vector<std::int64_t> Reader::integers() const {
  std::vector<std::int64_t> numbers;
  for (const Reader& element : elements()) numbers.push_back(element.integer());
  return numbers;
}

std::vector<std::string> Reader::texts() const {
  std::vector<std::string> all;
  for (const Reader& element : elements()) all.push_back(element.text());
  return all;
}

Napi::ArrayBuffer arrayBuffer(Napi::Env env, const std::vector<char>& bytes) {
  auto buffer = Napi::ArrayBuffer::New(env, bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.Data(), bytes.data(), bytes.size());
  return buffer;
}

Bytes bytesOf(const Napi::Value& view) {
  // Per napi_typedarray_type: int8, uint8, uint8 clamped, int16, uint16, int32, uint32, float32, float64, bigint64,
  // biguint64, float16.
  constexpr std::size_t kElement[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 2};
  Bytes bytes;
  if (view.IsTypedArray()) {
    // In one call: a run of a small engine is as long as a few of them.
    napi_typedarray_type type = napi_uint8_array;
    std::size_t length = 0;
    const bool known =
        napi_get_typedarray_info(view.Env(), view, &type, &length, &bytes.data, nullptr, nullptr) == napi_ok;
    expect(known && type < sizeof kElement / sizeof kElement[0], "a typed array of a known type");
    bytes.size = length * kElement[type];
    return bytes;
  }
  expect(view.IsDataView(), "a typed array or a DataView");
  expect(napi_get_dataview_info(view.Env(), view, &bytes.size, &bytes.data, nullptr, nullptr) == napi_ok,
         "a DataView that is not detached");
  return bytes;
}

namespace {

Napi::Error errorOf(Napi::Env env, const Failure& failure) {
  auto error = Napi::Error::New(env, failure.message);
  error.Set("code", Napi::String::New(env, failure.code));
  if (failure.lines.empty() && failure.parserErrors.empty() && failure.numbers.empty()) return error;
  Writer details(env);
  for (const auto& [name, number] : failure.numbers) details.set(name, number);
  if (!failure.lines.empty()) details.set("lastLines", array(env, failure.lines));
  if (!failure.parserErrors.empty())
    details.set("nodes", array(env, failure.parserErrors, [env](const ParserError& node) {
                  return Writer(env)
                      .set("code", node.code)
                      .set("node", node.node)
                      .setOrNull("name", node.nodeName)
                      .setOrNull("operator", node.nodeOperator)
                      .set("description", node.description)
                      .setOrNull("file", node.file)
                      .set("line", node.line)
                      .value();
                }));
  error.Set("details", details.value());
  return error;
}

// Undefined where JavaScript makes no error any more.
Napi::Value errorOrUndefined(Napi::Env env, const Failure& failure) {
  try {
    return errorOf(env, failure).Value();
  } catch (const std::exception&) {
    return env.Undefined();
  }
}

}  // namespace

void resolve(const Napi::Promise::Deferred& deferred, const Napi::Value& value) noexcept {
  try {
    deferred.Resolve(value);
  } catch (const Napi::Error&) {
  }
}

void reject(const Napi::Promise::Deferred& deferred, const Failure& failure) noexcept {
  try {
    deferred.Reject(errorOrUndefined(deferred.Env(), failure));
  } catch (const Napi::Error&) {
  }
}

void raise(Napi::Env env, const Failure& failure) noexcept { napi_throw(env, errorOrUndefined(env, failure)); }

void raise(const Napi::Error& error) noexcept {
  try {
    napi_throw(error.Env(), error.Value());
  } catch (const Napi::Error&) {
  }
}

}  // namespace trtforge::js
