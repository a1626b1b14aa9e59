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
    const answers = run(join(work, 'probe'), []).trim().split('\n').map(Number);
    return asked.flatMap((question, index) =>
      answers[index] === question.index
        ? []
        : [
            `${question.class}::${question.name} is slot ${answers[index]} for the compiler and ${question.index} in the text.`,
          ],
    );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function questions(classes) {
  return Object.entries(classes).flatMap(([name, { impl, slots }]) =>
    slots
      .filter(
        (slot) =>
          !slot.name.startsWith('destroy.') && slots.filter((other) => other.name === slot.name).length === 1,
      )
      .map((slot) => ({ class: name, scope: scopeOf(name, impl), name: slot.name, index: slot.index })),
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
    '#include "NvInfer.h"',
    ...(hasParser ? ['#include "NvOnnxParser.h"'] : []),
    'template <class Member> long slot(Member member) {',
    '  long words[2];',
    '  static_assert(sizeof member == sizeof words, "not the Itanium C++ ABI");',
    '  std::memcpy(words, &member, sizeof words);',
    '  return (words[0] - 1) / static_cast<long>(sizeof(void*));',
    '}',
    // A public object is its table pointer and the pointer to the object that does the work.
    ...facades.map(
      (name) =>
        `static_assert(sizeof(nvinfer1::${name}) == 2 * sizeof(void*), "${name} has another layout");`,
    ),
    'int main() {',
    ...asked.map(({ scope, name }) => `  std::printf("%ld\\n", slot(&${scope}::${name}));`),
    '}',
    '',
  ].join('\n');
}

function run(command, args) {
  const done = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 64 << 20 });
  if (done.status !== 0) throw new Error(`${command} failed: ${done.error?.message ?? done.stderr}`);
  return done.stdout;
}
