import { readdirSync, readFileSync } from 'node:fs';

/** ONNX Runtime 1.20: functions of `ort.json` without `since` are in it. */
export const OLDEST_ORT_MINOR = 20;

/** The generations in the order the C++ side counts them. */
export const GENERATIONS = ['8', '10', '11', 'rtx1'];

/** Reads the committed tables, in the order of `GENERATIONS`. */
export function readTables(folder = new URL('./', import.meta.url)) {
  const present = readdirSync(folder);
  return GENERATIONS.map((generation) => {
    if (!present.includes(`${generation}.json`))
      throw new Error(`The table native/abi/${generation}.json is missing.`);
    return JSON.parse(readFileSync(new URL(`${generation}.json`, folder), 'utf8'));
  });
}

/** C++ of what `headers.mjs` calls the types that the machine passes. */
const CPP = {
  void: 'void',
  bool: 'bool',
  float: 'float',
  double: 'double',
  int32: 'std::int32_t',
  uint32: 'std::uint32_t',
  int64: 'std::int64_t',
  uint64: 'std::size_t',
  text: 'const char*',
  pointer: 'void*',
  'int32*': 'const std::int32_t*',
  'int64*': 'const std::int64_t*',
  dims32: 'Dims32',
  dims64: 'Dims64',
  'dims32*': 'const Dims32*',
  'dims64*': 'const Dims64*',
};

/** `bool(text, pointer)` in C++; what has no type cannot be called. */
function signature({ name, type = name.startsWith('destroy.') ? 'void()' : '' }) {
  if (type === '') return 'Absent';
  const [, result, taken] = /^(\S+)\((.*)\)$/.exec(type);
  const passed =
    taken === '' ? [] : taken.split(', ').map((each) => (each === 'pointer' ? 'const void*' : CPP[each]));
  return `${CPP[result]}(${passed.join(', ')})`;
}

/**
 * The C++ header that holds all tables: an object per function (`Slot::IBuilderConfig_setFlag_1`: class, name, number of parameters, so that a function
 * whose parameters changed is another function) with its type in each generation, and its place in each generation.
 */
export function slotsHeader(tables) {
  const functions = new Map();
  tables.forEach((table, generation) => {
    for (const [className, { slots }] of Object.entries(table.classes)) {
      const seen = new Map();
      for (const slot of slots) {
        const base = `${className}_${slot.name.replace('.', '_')}_${slot.parameters}`;
        const copy = seen.get(base) ?? 0;
        seen.set(base, copy + 1);
        const name = copy === 0 ? base : `${base}_${copy + 1}`;
        const entry = functions.get(name) ?? {
          shown: `${className}::${slot.name}`,
          places: tables.map(() => undefined),
        };
        entry.places[generation] = slot;
        functions.set(name, entry);
      }
    }
  });
  const rows = [...functions].sort(([a], [b]) => (a < b ? -1 : 1));
  return [
    '// Generated from native/abi/*.json by scripts/build-native.mjs.',
    '#pragma once',
    '#include <cstdint>',
    '#include <cstddef>',
    '',
    'namespace trtforge {',
    '',
    'template <class Number>',
    'struct Dims;',
    'using Dims32 = Dims<std::int32_t>;',
    'using Dims64 = Dims<std::int64_t>;',
    '',
    '// A function by its row in `kFunctions`.',
    'struct AnyMethod {',
    '  std::uint16_t row;',
    '};',
    '// With its type in each generation; `Absent` where the generation lacks it.',
    'struct Absent;',
    'template <class... Types>',
    'struct Method : AnyMethod {};',
    '',
    'namespace Slot {',
    ...rows.map(([name, { places }], row) => {
      const types = places.map((slot) => (slot === undefined ? 'Absent' : signature(slot)));
      return `inline constexpr Method<${types.join(', ')}> ${name}{{${row}}};`;
    }),
    '}  // namespace Slot',
    '',
    'struct Place {',
    '  std::int16_t index;       // -1: not in this generation',
    '  std::int32_t since;       // first version that has it, as 10 * 10000 + 3 * 100 + 0',
    '  std::int32_t except;      // a later version that has something else in this place, or 0',
    '};',
    '',
    `inline constexpr int kGenerations = ${tables.length};`,
    `inline constexpr const char* kGenerationNames[] = {${tables.map(({ generation }) => `"${generation}"`).join(', ')}};`,
    `inline constexpr std::int32_t kFirstVersions[] = {${tables.map(({ from }) => number(from)).join(', ')}};`,
    '',
    'struct Function {',
    '  const char* name;',
    '  Place places[kGenerations];',
    '};',
    '',
    'inline constexpr Function kFunctions[] = {',
    ...rows.map(
      ([, { shown, places }]) =>
        `  {"${shown}", {${places.map((slot, generation) => place(slot, tables[generation])).join(', ')}}},`,
    ),
    '};',
    '',
    '}  // namespace trtforge',
    '',
  ].join('\n');
}

/** Reads the committed places of ONNX Runtime's C functions. */
export const readOrtTable = (folder = new URL('./', import.meta.url)) =>
  JSON.parse(readFileSync(new URL('ort.json', folder), 'utf8'));

/** The C++ header of ONNX Runtime's C functions: an object each (`Ort::Run`) with its type, its place and the minor version that it needs. */
export const ortHeader = ({ functions }) =>
  [
    '// Generated from native/abi/ort.json by scripts/build-native.mjs.',
    '#pragma once',
    '#include <cstdint>',
    '#include <cstddef>',
    '',
    'namespace trtforge::ort {',
    '',
    'struct AnyFunction {',
    '  const char* name;',
    '  int index;',
    '  int since;',
    '};',
    'template <class Type>',
    'struct Function : AnyFunction {};',
    '',
    'namespace Slot {',
    ...Object.entries(functions).map(
      ([name, { index, since = OLDEST_ORT_MINOR, type }]) =>
        `inline constexpr Function<${signature({ name, type })}> ${name}{{"${name}", ${index}, ${since}}};`,
    ),
    '}  // namespace Slot',
    '',
    `inline constexpr int kOldestMinor = ${OLDEST_ORT_MINOR};`,
    '',
    '}  // namespace trtforge::ort',
    '',
  ].join('\n');

function place(slot, table) {
  if (slot === undefined) return '{-1, 0, 0}';
  return `{${slot.index}, ${number(slot.since ?? table.from)}, ${slot.except === undefined ? 0 : number(slot.except[0])}}`;
}

function number(version) {
  const [major, minor, patch] = version.split('.').map(Number);
  return major * 10000 + minor * 100 + patch;
}
