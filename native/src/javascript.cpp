#include "javascript.hpp"

#include <cstring>

namespace trtforge::js {

void check(napi_env env, napi_status status) {
  if (status == napi_ok) return;
  const napi_extended_error_info* info = nullptr;
  napi_get_last_error_info(env, &info);
  throw Failure("TF_INTERNAL", std::string("Node-API: ") + (info != nullptr && info->error_message != nullptr ? info->error_message : "unknown error") + ".");
}

Reader Reader::operator[](const char* key) const {
  napi_value value;
  check(env_, napi_get_named_property(env_, value_, key, &value));
  return Reader(env_, value);
}

std::vector<Reader> Reader::elements() const {
  std::uint32_t length = 0;
  check(env_, napi_get_array_length(env_, value_, &length));
  std::vector<Reader> all;
  for (std::uint32_t i = 0; i < length; ++i) {
    napi_value value;
    check(env_, napi_get_element(env_, value_, i, &value));
    all.emplace_back(env_, value);
  }
  return all;
}

std::string Reader::text() const {
  std::size_t length = 0;
  check(env_, napi_get_value_string_utf8(env_, value_, nullptr, 0, &length));
  std::string text(length, '\0');
  check(env_, napi_get_value_string_utf8(env_, value_, text.data(), length + 1, &length));
  return text;
}

std::string Reader::textOrEmpty() const { return isNull() ? "" : text(); }

std::int64_t Reader::integer() const {
  std::int64_t number = 0;
  check(env_, napi_get_value_int64(env_, value_, &number));
  return number;
}

double Reader::number() const {
  double number = 0;
  check(env_, napi_get_value_double(env_, value_, &number));
  return number;
}

bool Reader::boolean() const {
  bool value = false;
  check(env_, napi_get_value_bool(env_, value_, &value));
  return value;
}

bool Reader::isNull() const {
  napi_valuetype type;
  check(env_, napi_typeof(env_, value_, &type));
  return type == napi_null || type == napi_undefined;
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

namespace {

napi_value textValue(napi_env env, const std::string& text) {
  napi_value value;
  check(env, napi_create_string_utf8(env, text.data(), text.size(), &value));
  return value;
}

}  // namespace

Writer& Writer::set(const char* key, napi_value value) {
  check(env_, napi_set_named_property(env_, value_, key, value));
  return *this;
}

Writer& Writer::set(const char* key, const std::string& text) { return set(key, textValue(env_, text)); }

Writer& Writer::set(const char* key, double number) {
  napi_value value;
  check(env_, napi_create_double(env_, number, &value));
  return set(key, value);
}

Writer& Writer::set(const char* key, bool flag) {
  napi_value value;
  check(env_, napi_get_boolean(env_, flag, &value));
  return set(key, value);
}

Writer& Writer::setOrNull(const char* key, const std::string& text) { return text.empty() ? set(key, nullValue(env_)) : set(key, text); }

napi_value array(napi_env env, const std::vector<std::int64_t>& numbers) {
  return array(env, numbers, [env](std::int64_t number) {
    napi_value value;
    check(env, napi_create_double(env, static_cast<double>(number), &value));
    return value;
  });
}

napi_value array(napi_env env, const std::vector<std::string>& texts) {
  return array(env, texts, [env](const std::string& text) { return textValue(env, text); });
}

napi_value nullValue(napi_env env) {
  napi_value value;
  check(env, napi_get_null(env, &value));
  return value;
}

napi_value arrayBuffer(napi_env env, const void* bytes, std::size_t size) {
  void* data = nullptr;
  napi_value value;
  check(env, napi_create_arraybuffer(env, size, &data, &value));
  if (size > 0) std::memcpy(data, bytes, size);
  return value;
}

Bytes bytesOf(napi_env env, napi_value view) {
  // Per napi_typedarray_type: int8, uint8, uint8 clamped, int16, uint16, int32, uint32, float32, float64, bigint64, biguint64, float16.
  constexpr std::size_t kElement[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 2};
  Bytes bytes;
  napi_typedarray_type type;
  std::size_t length = 0;
  if (napi_get_typedarray_info(env, view, &type, &length, &bytes.data, nullptr, nullptr) == napi_ok && type < sizeof kElement / sizeof kElement[0]) {
    bytes.size = length * kElement[type];
    return bytes;
  }
  check(env, napi_get_dataview_info(env, view, &bytes.size, &bytes.data, nullptr, nullptr));
  return bytes;
}

namespace {

napi_value errorOf(napi_env env, const Failure& failure) {
  napi_value error;
  check(env, napi_create_error(env, textValue(env, failure.code), textValue(env, failure.message), &error));
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
  check(env, napi_set_named_property(env, error, "details", details.value()));
  return error;
}

napi_value errorOrUndefined(napi_env env, const Failure& failure) noexcept {
  napi_value value = nullptr;
  try {
    value = errorOf(env, failure);
  } catch (const std::exception&) {
    napi_get_undefined(env, &value);
  }
  return value;
}

}  // namespace

void raise(napi_env env, const Failure& failure) noexcept { napi_throw(env, errorOrUndefined(env, failure)); }

void reject(napi_env env, napi_deferred deferred, const Failure& failure) noexcept { napi_reject_deferred(env, deferred, errorOrUndefined(env, failure)); }

}  // namespace trtforge::js
