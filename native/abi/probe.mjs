import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Asks the C++ compiler what `readHeaders` read from the text: a small program prints the slot inside each pointer to a virtual member function.
 * Overloaded names are left to the text (a pointer to one is ambiguous). Returns lines that disagree; throws when the headers do not compile.
 */
export function disagreements(folder, { classes, hasParser }, compiler = process.env.CXX ?? 'g++') {
  const work = mkdtempSync(join(tmpdir(), 'trtforge-abi-'));
  try {
    // The two CUDA types the headers name; nothing of CUDA is needed to read a table.
    writeFileSync(
      join(work, 'cuda_runtime_api.h'),
      'typedef struct CUstream_st* cudaStream_t;\ntypedef struct CUevent_st* cudaEvent_t;\n',
    );
    const asked = questions(classes);
    writeFileSync(join(work, 'probe.cpp'), program(asked, Object.entries(classes), hasParser));
    run(compiler, [
      '-std=c++17',
      '-w',
      `-I${work}`,
      `-isystem${folder}`,
      '-o',
      join(work, 'probe'),
      join(work, 'probe.cpp'),
    ]);
    const answers = run(join(work, 'probe'), []).trim().split('\n');
    return asked.flatMap(({ class: className, name, index, type }, at) => {
      const [, slot, found] = /^(\d+) (.*)$/.exec(answers[at]);
      const read = `${index} ${type}`;
      const compiled = `${slot} ${found.includes('?') ? undefined : found}`;
      return compiled === read
        ? []
        : [`${className}::${name} is slot ${compiled} for the compiler and ${read} in the text.`];
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Types of member functions in the words of `headers.mjs`, a structure passed by value as `?`. */
const TYPES = `
template <class Type> std::string wordOf() {
  if constexpr (std::is_enum_v<Type>) return wordOf<std::underlying_type_t<Type>>();
  else if constexpr (std::is_void_v<Type>) return "void";
  else if constexpr (std::is_same_v<Type, bool>) return "bool";
  else if constexpr (std::is_same_v<Type, nvinfer1::Dims>) return sizeof(Type) == 36 ? "dims32" : "dims64";
  else if constexpr (std::is_integral_v<Type>) return (std::is_signed_v<Type> ? "int" : "uint") + std::to_string(8 * sizeof(Type));
  else if constexpr (std::is_floating_point_v<Type>) return sizeof(Type) == 4 ? "float" : "double";
  else if constexpr (std::is_pointer_v<Type> || std::is_reference_v<Type>) {
    using Pointed = std::remove_cv_t<std::remove_pointer_t<std::remove_reference_t<Type>>>;
    if (std::is_reference_v<Type> && std::is_pointer_v<std::remove_reference_t<Type>>) return "pointer";
    if constexpr (std::is_same_v<Pointed, char>) return "text";
    else if constexpr (std::is_same_v<Pointed, int> || std::is_same_v<Pointed, long> || std::is_enum_v<Pointed> || std::is_same_v<Pointed, nvinfer1::Dims>) return wordOf<Pointed>() + "*";
    else return "pointer";
  } else return "?";
}
template <class Result, class... Taken> std::string words() {
  std::string taken;
  ((taken += (taken.empty() ? "" : ", ") + wordOf<Taken>()), ...);
  return wordOf<Result>() + "(" + taken + ")";
}
template <class C, class R, class... A> std::string typeOf(R (C::*)(A...)) { return words<R, A...>(); }
template <class C, class R, class... A> std::string typeOf(R (C::*)(A...) const) { return words<R, A...>(); }
template <class C, class R, class... A> std::string typeOf(R (C::*)(A...) noexcept) { return words<R, A...>(); }
template <class C, class R, class... A> std::string typeOf(R (C::*)(A...) const noexcept) { return words<R, A...>(); }`;

function questions(classes) {
  return Object.entries(classes).flatMap(([name, { impl, slots }]) =>
    slots
      .filter(
        (slot) =>
          !slot.name.startsWith('destroy.') && slots.filter((other) => other.name === slot.name).length === 1,
      )
      .map((slot) => ({
        class: name,
        scope: scopeOf(name, impl),
        name: slot.name,
        index: slot.index,
        type: slot.type,
      })),
  );
}

const scopeOf = (name, impl) =>
  impl !== undefined
    ? `nvinfer1::apiv::${impl}`
    : name.startsWith('IParser')
      ? `nvonnxparser::${name}`
      : `nvinfer1::${name}`;

function program(asked, classes, hasParser) {
  const facades = classes.filter(([, { impl }]) => impl !== undefined).map(([name]) => name);
  return [
    '#include <cstdio>',
    '#include <cstring>',
    '#include <string>',
    '#include <type_traits>',
    '#include "NvInfer.h"',
    ...(hasParser ? ['#include "NvOnnxParser.h"'] : []),
    'template <class Member> long slot(Member member) {',
    '  long words[2];',
    '  static_assert(sizeof member == sizeof words, "not the Itanium C++ ABI");',
    '  std::memcpy(words, &member, sizeof words);',
    '  return (words[0] - 1) / static_cast<long>(sizeof(void*));',
    '}',
    TYPES,
    // A public object is its table pointer and the pointer to the object that does the work.
    ...facades.map(
      (name) =>
        `static_assert(sizeof(nvinfer1::${name}) == 2 * sizeof(void*), "${name} has another layout");`,
    ),
    'int main() {',
    ...asked.map(
      ({ scope, name }) =>
        `  std::printf("%ld %s\\n", slot(&${scope}::${name}), typeOf(&${scope}::${name}).c_str());`,
    ),
    '}',
    '',
  ].join('\n');
}

function run(command, args) {
  const done = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 64 << 20 });
  if (done.status !== 0) throw new Error(`${command} failed: ${done.error?.message ?? done.stderr}`);
  return done.stdout;
}
