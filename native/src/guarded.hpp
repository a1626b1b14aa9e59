// The edge of every exported function.
#pragma once
#include <node_api.h>

#include <array>

#include "javascript.hpp"

namespace trtforge {

// Turns a Failure into a JavaScript exception.
template <napi_value (*function)(napi_env, napi_callback_info)>
napi_value guarded(napi_env env, napi_callback_info info) {
  try {
    return function(env, info);
  } catch (const Failure& failure) {
    bool pending = false;
    napi_is_exception_pending(env, &pending);
    if (!pending) js::raise(env, failure);
  } catch (const std::exception& exception) {
    js::raise(env, Failure("TF_INTERNAL", exception.what()));
  }
  return nullptr;
}

template <std::size_t count>
std::array<napi_value, count> argumentsOf(napi_env env, napi_callback_info info) {
  std::array<napi_value, count> values;
  std::size_t given = count;
  js::check(env, napi_get_cb_info(env, info, &given, values.data(), nullptr, nullptr));
  return values;
}

}  // namespace trtforge
