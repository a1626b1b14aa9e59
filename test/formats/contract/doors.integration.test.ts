import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBatchAxis } from '../../../src/engines/profiles/profile.js';
import type { Named } from '../../../src/formats/contract/state.js';
import type { Dtype } from '../../../src/formats/tensor/dtype.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { returnedAs } from '../../../src/products/bundle/transducer.js';
import { contractFromModel } from '../../../src/products/streaming/contract/draft.js';
import { statesAmong } from '../../../src/quality/known-answer/made-inputs.js';
import { modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { range, tensor, writeEngine } from '../../products/triton/engines.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-contract-doors-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const run = (...args: readonly string[]) =>
  trtforge([...args, '--json'], { XDG_CACHE_HOME: at('xdg'), TENSORRT_CACHE_DIR: at('store') });

const contract = {
  schema: 'trtforge.contract/1',
  name: 'm',
  inputs: [
    { name: 'x', dtype: 'float32', shape: ['B', 8] },
    { name: 'z', dtype: 'float32', shape: ['B', 3] },
  ],
  outputs: [
    { name: 'y', dtype: 'float32', shape: ['B', 8] },
    { name: 'z_other', dtype: 'float32', shape: ['B', 3] },
  ],
  state: [{ input: 'z', output: 'z_other', initial: 0.5 }],
};
const written = (name: string, content: object) => {
  writeFileSync(at(name), JSON.stringify(content));
  return at(name);
};

let model = '';
let engine = '';
beforeAll(async () => {
  model = await modelFile((graph) => {
    for (const [from, to, size] of [
      ['x', 'y', 8],
      ['z', 'z_other', 3],
    ] as const) {
      graph.input(from, 'float32', ['B', size]);
      graph.node('Relu', { inputs: [from], outputs: [to] });
      graph.output(to, 'float32', ['B', size]);
    }
  });
  engine = writeEngine(folder, 'm.engine', {
    inputs: [tensor('x', [null, 8]), tensor('z', [null, 3])],
    outputs: [tensor('y', [null, 8]), tensor('z_other', [null, 3])],
    recipe: { profiles: [{ x: range([1, 8], [1, 8], [4, 8]), z: range([1, 3], [1, 3], [4, 3]) }] },
  });
});

/** Every verb that reads a contract, as a line after which the file stands. */
const doors: readonly (readonly [string, () => readonly string[]])[] = [
  ['stream check', () => ['stream', 'check', model, '--contract']],
  ['stream record', () => ['stream', 'record', model, '-o', at('ref'), '--contract']],
  ['stream verify', () => ['stream', 'verify', model, '--reference', at('none.jsonl'), '--contract']],
  [
    'build --profile-from',
    () => ['build', model, '--dry-run', '--target', 'tensorrt-rtx:sm_89', '--profile-from'],
  ],
  ['triton export', () => ['triton', 'export', engine, '-o', at('models'), '--contract']],
];

describe.each(doors)('%s', (_verb, line) => {
  test.each<[string, object]>([
    ['an unknown key', { ...contract, asserts: [] }],
    ['an unknown key of a state', { ...contract, state: [{ ...contract.state[0], inital: 1 }] }],
    ['a state of no tensor', { ...contract, state: [{ input: 'z', output: 'q' }] }],
  ])('rejects %s', async (_what, content) => {
    const { json, exitCode } = await run(...line(), written('wrong.json', content));
    expect([exitCode, json().error?.code]).toEqual([2, 'TF_CONTRACT_INVALID']);
  });
});

test('triton export takes the states of any form, and what they begin with', async () => {
  const { json } = await run(
    'triton',
    'export',
    engine,
    '-o',
    at('a'),
    '--contract',
    written('c.json', contract),
  );
  expect(json<{ models: object[] }>().models).toMatchObject([
    { states: [{ input: 'z', output: 'z_other', initial: 0.5 }] },
  ]);
  const [inputs, outputs] = [
    contract.inputs,
    contract.outputs.map((each) => (each.name === 'y' ? each : { ...each, name: 'z_out' })),
  ];
  const other = writeEngine(folder, 'out.engine', {
    inputs: [tensor('x', [null, 8]), tensor('z', [null, 3])],
    outputs: [tensor('y', [null, 8]), tensor('z_out', [null, 3])],
    recipe: { profiles: [{ x: range([1, 8], [1, 8], [4, 8]), z: range([1, 3], [1, 3], [4, 3]) }] },
  });
  const legacy = written('legacy.json', { model: 'm.onnx', inputs, outputs });
  const second = await run('triton', 'export', other, '-o', at('b'), '--contract', legacy);
  expect(second.json<{ models: object[] }>().models).toMatchObject([
    { states: [{ input: 'z', output: 'z_out', initial: 0 }] },
  ]);
});

test('triton check names a contract beside the configuration that is not valid', async () => {
  await run('triton', 'export', engine, '-o', at('checked'), '--contract', written('c.json', contract));
  const beside = (content: object) => {
    mkdirSync(at('checked/classifier'), { recursive: true });
    written('checked/classifier/contract.json', content);
    return run('triton', 'check', at('checked'));
  };
  const codes = async (content: object) =>
    (await beside(content)).json<{ findings: { code: string }[] }>().findings.map(({ code }) => code);
  expect(await codes(contract)).not.toContain('contract-invalid');
  expect(await codes({ ...contract, asserts: [] })).toContain('contract-invalid');
  expect(await codes({ labels: ['a'] })).not.toContain('contract-invalid');
});

describe('which output becomes which input is one answer', () => {
  type Shape = NonNullable<Named['shape']>;
  const streamed = ['feed', ['N', 39, 80]] as const;
  const named = (tensors: readonly (readonly [string, Shape])[]) =>
    tensors.map(([name, shape]) => ({ name, dtype: 'float32' as Dtype, shape }));

  test.each<[string, readonly [string, string, Shape][]]>([
    ['with the batch second', [['state', 'stateN', [2, 'N', 128]]]],
    [
      'with the batch second, renamed',
      [
        ['cached_key_0', 'new_cached_key_0', [128, 'N', 64]],
        ['cached_conv_0', 'new_cached_conv_0', ['N', 12, 4]],
      ],
    ],
    ['of keys and values', [['past_key_values.0.key', 'present.0.key', ['N', 2, 5, 4]]]],
    ['whose names say little', [['foo', 'foo_next', ['N', 6]]]],
  ])('for states %s', async (_what, pairs) => {
    const inputs = named([streamed, ...pairs.map(([input, , shape]) => [input, shape] as const)]);
    const outputs = named([
      ['result', ['N', 7]],
      ...pairs.map(([, output, shape]) => [output, shape] as const),
    ]);
    const expected = pairs.map(([input, output]) => [input, output]);
    const drafted = contractFromModel('m', { inputs, outputs }).state;
    expect(drafted.map(({ input, output }) => [input, output])).toEqual(expected);
    expect([...returnedAs({ inputs, outputs })].map(([input, { name }]) => [input, name])).toEqual(expected);

    const sized = (shape: Shape) => shape.map((size) => (typeof size === 'number' ? size : 3));
    const made = inputs.map(({ name, shape }) => ({
      ...{ name, dtype: 'float32', shape: sized(shape), spread: { kind: 'zeros' } as never },
    }));
    const tensors = new Map(
      outputs.map(({ name, shape }) => {
        const dims = sized(shape);
        return [name, tensorFrom('float32', dims, new Float32Array(dims.reduce((a, b) => a * b)))] as const;
      }),
    );
    expect(Object.entries(statesAmong(made, tensors))).toEqual(expected);

    const open = (shape: Shape) => shape.map((size) => (typeof size === 'number' ? size : null));
    const plan = writeEngine(folder, 'states.engine', {
      inputs: inputs.map(({ name, shape }) => tensor(name, open(shape))),
      outputs: outputs.map(({ name, shape }) => tensor(name, open(shape))),
      recipe: {
        profiles: [
          Object.fromEntries(
            inputs.map(({ name, shape }) => {
              const ends = [1, 2, 4].map((batch) =>
                shape.map((size) => (size === 'N' ? batch : Number(size))),
              );
              return [name, range(ends[0]!, ends[1]!, ends[2]!)];
            }),
          ),
        ],
      },
    });
    rmSync(at('named'), { recursive: true, force: true });
    await run('triton', 'export', plan, '-o', at('named'));
    const { json } = await run('triton', 'check', at('named'));
    const findings = json<{ findings: { code: string; message: string }[] }>().findings;
    const found = findings.filter(({ code }) => code === 'state-by-name');
    expect(found).toHaveLength(pairs.length);
    for (const [at, [input, output]] of pairs.entries())
      for (const name of [input, output]) expect(found[at]?.message).toContain(`"${name}"`);
    for (const [input, , shape] of pairs)
      if (shape[1] === 'N') expect(isBatchAxis(inputs, input, 1)).toBe(true);
  });

  test('but a known answer feeds back only what fits as it is, the next output of the name otherwise', () => {
    const zeros = (...shape: number[]) =>
      tensorFrom('float32', shape, new Float32Array(shape.reduce((a, b) => a * b)));
    const input = (name: string, ...shape: number[]) => ({
      ...{ name, dtype: 'float32', shape, spread: { kind: 'zeros' } as never },
    });
    const inputs = [input('x', 1, 8), input('cache', 1, 4)];
    const grown = new Map([
      ['y', zeros(1, 8)],
      ['new_cache_out', zeros(1, 6)],
    ]);
    expect(statesAmong(inputs, grown)).toEqual({});
    expect(statesAmong(inputs, new Map([...grown, ['cache_next', zeros(1, 4)]]))).toEqual({
      cache: 'cache_next',
    });
  });
});
