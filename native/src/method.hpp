// Types of the library's functions, which a few generations declare differently: a call with a value of another width
// does not compile.
#pragma once
#include <tuple>
#include <type_traits>

#include "dims.hpp"
#include "slots.h"

namespace trtforge {

enum class Generation : int { k8 = 0, k10 = 1, k11 = 2, kRtx1 = 3, kUnknown = -1 };

// A function with the type that calls go by, and the generations (a bit each) that declare it so.
template <class Type>
struct TypedMethod : AnyMethod {
  unsigned generations;
};

template <class Type, class... Types>
constexpr TypedMethod<Type> typed(const Method<Types...>& method) {
  unsigned generations = 0, bit = 1;
  ((generations |= std::is_same_v<Types, Type> ? bit : 0, bit <<= 1), ...);
  return {{method.row}, generations};
}

// As one generation declares it.
template <Generation generation, class... Types>
constexpr auto declaredIn(const Method<Types...>& method) {
  return typed<std::tuple_element_t<static_cast<std::size_t>(generation), std::tuple<Types...>>>(method);
}

// The type that all generations agree on.
template <class First, class... Rest>
struct Agreed {
  static_assert(((std::is_same_v<Rest, First> || std::is_same_v<Rest, Absent>)&&...),
                "Generations declare this function differently: choose one with declaredIn.");
  using Type = First;
};
template <class Next, class... Rest>
struct Agreed<Absent, Next, Rest...> : Agreed<Next, Rest...> {};

template <class... Types>
constexpr auto agreed(const Method<Types...>& method) {
  return typed<typename Agreed<Types...>::Type>(method);
}

// Numbers are passed as they are; pointers as C++ converts them.
template <class Given, class Taken>
inline constexpr bool kPasses =
    std::is_pointer_v<Taken> ? std::is_convertible_v<Given, Taken> : std::is_same_v<Given, Taken>;

// Calls a virtual function of an object whose first word is its table. The Itanium C++ ABI passes `this` first, as a
// plain function would take it.
template <class Result, class... Taken, class... Given>
Result callVirtual(void* object, int place, const TypedMethod<Result(Taken...)>&, Given... given) {
  static_assert((kPasses<Given, Taken> && ...), "An argument is not of the type that the function takes.");
  auto function = reinterpret_cast<Result (*)(void*, Taken...)>((*static_cast<void***>(object))[place]);
  return function(object, static_cast<Taken>(given)...);
}

}  // namespace trtforge
