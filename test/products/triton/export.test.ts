import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { identityDigest } from '../../../src/engines/identity/identity.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { openLocalStore } from '../../../src/engines/store/open-stores.js';
import { type TritonExport, tritonExportSchema } from '../../../src/products/triton/export/export-models.js';
import { readModelConfig } from '../../../src/products/triton/model-config.js';
import { codeOfLine, trtforge } from '../../support/trtforge.js';
import { type EngineFacts, range, tensor, writeEngine } from './engines.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-triton-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = root;
let models = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'case-'));
  models = join(folder, 'models');
});

const environment = () => ({
  XDG_CACHE_HOME: join(folder, 'xdg'),
  TENSORRT_CACHE_DIR: join(folder, 'store'),
});
const line = (args: readonly string[]) => ['triton', 'export', ...args, '-o', models];

async function exported(...args: readonly string[]): Promise<TritonExport> {
  const { exitCode, json, out } = await trtforge([...line(args), '--json'], environment());
  expect([exitCode, out]).toEqual([0, out]);
  const { ok: _, command: __, exitCode: ___, ...result } = json();
  return tritonExportSchema.strict().parse(result);
}
const code = (...args: readonly string[]) => codeOfLine(line(args), environment());
const configOf = (name = 'classifier') => readModelConfig(join(models, name, 'config.pbtxt'));
const engine = (file: string, facts?: EngineFacts) => writeEngine(folder, file, facts);

const images = (batch: number) => [batch, 3, 8, 8];
const profile = (...batches: readonly [number, number, number]) => {
  const [min, opt, max] = batches.map(images) as [number[], number[], number[]];
  return { x: range(min, opt, max) };
};

describe('a model for several GPUs', () => {
  test('has the plan of each, never a default, and what all of them take', async () => {
    const ada = engine('ada.engine', { recipe: { profiles: [profile(1, 4, 16), profile(8, 16, 64)] } });
    const blackwell = engine('b.engine', {
      capability: 120,
      recipe: { profiles: [profile(1, 4, 16), profile(8, 16, 32)] },
    });
    const result = await exported(ada, blackwell, '--instances', '2', '--delay', '2ms');
    const config = configOf();
    expect(config).toMatchObject({
      name: 'classifier',
      platform: 'tensorrt_plan',
      max_batch_size: 32,
      input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [3, 8, 8] }],
      output: [{ name: 'y', data_type: 'TYPE_FP32', dims: [10] }],
      instance_group: [{ kind: 'KIND_GPU', count: 2, profile: ['0', '1'] }],
      cc_model_filenames: { '8.9': 'sm_89.plan', '12.0': 'sm_120.plan' },
      dynamic_batching: { preferred_batch_size: [4, 16], max_queue_delay_microseconds: 2000 },
    });
    expect(config).not.toHaveProperty('default_model_filename');
    expect(config).not.toHaveProperty('version_policy');
    const [{ plans, files, maxBatchSize }] = result.models as [TritonExport['models'][number]];
    expect(maxBatchSize).toBe(32);
    for (const { capability, identity, path } of plans) {
      expect(config.parameters?.[`trtforge.identity.${capability}`]).toEqual({ string_value: identity });
      expect(existsSync(join(models, path))).toBe(true);
    }
    expect(readFileSync(join(models, plans[1]!.path))).toEqual(readFileSync(blackwell));
    expect(files.at(-1)).toBe('classifier/config.pbtxt');
    expect(result.warnings).toEqual([]);
  });

  test('is warmed up with each profile, in shapes and batches that every engine takes', async () => {
    engine('ada.engine', { recipe: { profiles: [profile(1, 4, 16), profile(8, 16, 64)] } });
    await exported(join(folder, 'ada.engine'));
    const input = { data_type: 'TYPE_FP32', dims: [3, 8, 8], zero_data: true };
    expect(configOf().model_warmup).toEqual([
      { name: 'profile 0', batch_size: 1, inputs: { x: input } },
      { name: 'profile 1', batch_size: 8, inputs: { x: input } },
    ]);
    const other = engine('other.engine', {
      capability: 120,
      recipe: { profiles: [profile(1, 4, 16), profile(16, 16, 64)] },
    });
    await exported(join(folder, 'ada.engine'), other);
    expect(configOf().model_warmup?.map(({ name }) => name)).toEqual(['profile 0']);
  });

  test.each<[string, EngineFacts, object]>([
    [
      'fixed shapes',
      { inputs: [tensor('x', [1, 8])], outputs: [tensor('y', [1, 2])], recipe: {} },
      {
        input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [1, 8] }],
        instance_group: [{ kind: 'KIND_GPU', count: 1 }],
      },
    ],
    [
      '[B], whose dimension is taken away again',
      {
        inputs: [tensor('x', [null, 8]), tensor('n', [null], 'int64')],
        recipe: { profiles: [{ x: range([1, 8], [2, 8], [4, 8]), n: range([1], [2], [4]) }] },
      },
      {
        max_batch_size: 4,
        input: [{ name: 'x' }, { name: 'n', data_type: 'TYPE_INT64', dims: [1], reshape: {} }],
      },
    ],
    [
      'a shape tensor, warmed up with its values',
      {
        inputs: [tensor('x', [null, 8]), tensor('size', [2], 'int64')],
        recipe: {
          profiles: [{ x: range([1, 8], [2, 8], [4, 8]), size: range([1, 1], [4, 5], [8, 8], true) }],
        },
      },
      {
        input: [{ dims: [-1, 8] }, { name: 'size', dims: [2], is_shape_tensor: true }],
        model_warmup: [{ inputs: { size: { input_data_file: 'profile_0_size', dims: [2] } } }],
      },
    ],
  ])('%s', async (_what, facts, config) => {
    await exported(engine('m.engine', facts));
    expect(configOf()).toMatchObject(config);
    const values = join(models, 'classifier', 'warmup', 'profile_0_size');
    if (existsSync(values))
      expect(new BigInt64Array(new Uint8Array(readFileSync(values)).buffer)).toEqual(
        new BigInt64Array([4n, 5n]),
      );
  });

  test('takes indices of the known answer for its warm-up: one row of valid ones', async () => {
    const spread = { kind: 'uniform' as const, low: 90, high: 100 };
    const x = { name: 'x', dtype: 'int64', shape: [4, 6], spread };
    const knownAnswer = {
      ...{ schema: 'trtforge.known-answer/1' as const, reference: 'none', precision: 'fp32', seed: 3 },
      ...{ generator: 1 as const, rows: null, state: {}, left: [], builtOn: null },
      cases: [{ name: 'profile 0, opt', profile: 0, steps: 1, inputs: [x], outputs: [] }],
    };
    const recipe = { profiles: [{ x: range([1, 6], [4, 6], [8, 6]) }] };
    await exported(engine('t.engine', { inputs: [tensor('x', [null, 6], 'int64')], recipe, knownAnswer }));
    expect(configOf().model_warmup?.[0]?.inputs).toEqual({
      x: { data_type: 'TYPE_INT64', dims: [6], input_data_file: 'profile_0_x' },
    });
    const bytes = new Uint8Array(readFileSync(join(models, 'classifier', 'warmup', 'profile_0_x')));
    const values = [...new BigInt64Array(bytes.buffer)].map(Number);
    expect(values).toHaveLength(6);
    expect(values.every((value) => value >= 90 && value <= 100)).toBe(true);
  });

  test('names its classes where the whole output is their scores', async () => {
    writeFileSync(
      join(folder, 'labels.txt'),
      Array.from({ length: 10 }, (_, at) => `class ${at}\n`).join(''),
    );
    await exported(engine('m.engine'), '--labels', join(folder, 'labels.txt'));
    expect(configOf().output).toMatchObject([{ label_filename: 'labels.txt' }]);
    expect(readFileSync(join(models, 'classifier', 'labels.txt'), 'utf8').split('\n')[9]).toBe('class 9');
    const id2label = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [at, `other ${at}`]));
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ id2label }));
    expect((await exported(join(folder, 'm.engine'), '--name', 'nine')).warnings).toHaveLength(1);
    expect(configOf('nine').output?.[0]).not.toHaveProperty('label_filename');
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ id2label: { ...id2label, 9: 'last' } }));
    await exported(join(folder, 'm.engine'), '--name', 'ten');
    expect(readFileSync(join(models, 'ten', 'labels.txt'), 'utf8')).toMatch(/^other 0\n.*last\n$/s);
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ id2label: { ...id2label, 9: 'la\nst' } }));
    expect(await code(join(folder, 'm.engine'), '--name', 'broken')).toBe('TF_SERVING_REFUSED');
  });
});

test('the preparation of images is a parameter, which is no identity', async () => {
  await exported(engine('m.engine', { preprocess: 'yolo' }));
  expect(configOf().parameters?.['trtforge.preprocess']).toEqual({ string_value: 'yolo' });
  const { json } = await trtforge(['triton', 'check', models, '--json'], environment());
  expect((json().findings as { code: string }[]).map(({ code }) => code)).not.toContain('identity-differs');
});

test('states that nothing states are named, and the line of the warning makes the contract', async () => {
  const sizes = (batch: number, ...more: number[]) => [batch, ...more];
  const facts = {
    inputs: [tensor('x', [null, 8]), tensor('cache', [null, 4])],
    outputs: [tensor('y', [null, 8]), tensor('cache_out', [null, 4])],
    recipe: {
      profiles: [
        {
          x: range(sizes(1, 8), sizes(2, 8), sizes(4, 8)),
          cache: range(sizes(1, 4), sizes(2, 4), sizes(4, 4)),
        },
      ],
    },
  };
  const path = engine('m.engine', facts);
  const { warnings } = await exported(path);
  expect(warnings).toHaveLength(1);
  const [, words = ''] = /(stream draft .*) -o contract\.json$/.exec(warnings[0]!) ?? [];
  const contract = join(folder, 'contract.json');
  expect(words.split(' ')).toEqual(['stream', 'draft', path]);
  expect((await trtforge([...words.split(' '), '-o', contract], environment())).exitCode).toBe(0);
  const { warnings: none, models: own } = await exported(path, '--contract', contract);
  expect([none, own[0]?.states.map(({ input }) => input)]).toEqual([[], ['cache']]);
});

describe('a model with states', () => {
  const frames = tensor('x', [null, 8, null]);
  const profiles = (state: [number[], number[], number[]]) => [
    { x: range([1, 8, 4], [2, 8, 4], [4, 8, 6]), z: range(...state) },
  ];
  const batched: EngineFacts = {
    inputs: [frames, tensor('z', [null, 3], 'float16')],
    outputs: [tensor('y', [null, 8]), tensor('z_next', [null, 3], 'float16')],
    recipe: {
      profiles: profiles([
        [1, 3],
        [2, 3],
        [4, 3],
      ]),
    },
  };
  const contract = (content: object) => {
    const path = join(folder, 'contract.json');
    const file = {
      ...{ schema: 'trtforge.contract/1', name: 'm' },
      inputs: [{ name: 'x', shape: ['B', 8, 'T'] }] as { name: string; shape?: unknown }[],
      state: [{ input: 'z', output: 'z_next' }] as { input: string; output: string }[],
      ...content,
    };
    const [own, outputs] = (['input', 'output'] as const).map((side) =>
      file.state.map((pair) => ({ name: pair[side] })),
    ) as [{ name: string }[], { name: string }[]];
    const inputs = [
      ...file.inputs,
      ...own.filter(({ name }) => file.inputs.every((each) => each.name !== name)),
    ];
    writeFileSync(path, JSON.stringify({ ...file, inputs, outputs }));
    return ['--contract', path];
  };

  test('a state that fills the memory is rejected', async () => {
    const huge = 2 ** 40;
    const facts = {
      ...batched,
      inputs: [frames, tensor('z', [null, null], 'float16')],
      outputs: [tensor('y', [null, 8]), tensor('z_next', [null, null], 'float16')],
      recipe: {
        profiles: profiles([
          [1, huge],
          [2, huge],
          [4, huge],
        ]),
      },
    };
    const state = [{ input: 'z', output: 'z_next', initial: 1 }];
    expect(await code(engine('m.engine', facts), ...contract({ state }))).toBe('TF_SERVING_REFUSED');
  });

  test('gets sequence batching, and nothing of a state among its inputs and outputs', async () => {
    const result = await exported(engine('m.engine', batched), ...contract({}));
    expect(configOf()).toMatchObject({
      max_batch_size: 4,
      input: [{ name: 'x', dims: [8, -1] }],
      output: [{ name: 'y', dims: [8] }],
      sequence_batching: {
        oldest: { preferred_batch_size: [2] },
        state: [
          {
            ...{ input_name: 'z', output_name: 'z_next', data_type: 'TYPE_FP16', dims: [3] },
            initial_state: [{ data_type: 'TYPE_FP16', dims: [3], zero_data: true }],
          },
        ],
      },
    });
    expect([configOf().input, configOf().output].map((tensors) => tensors?.length)).toEqual([1, 1]);
    // Its request would belong to no sequence, and the back end fails to write states then.
    expect(configOf()).not.toHaveProperty('model_warmup');
    expect(configOf()).not.toHaveProperty('dynamic_batching');
    expect(result.models[0]?.states).toEqual([{ input: 'z', output: 'z_next', initial: 0 }]);
  });

  test('starts with other values from a raw file', async () => {
    const state = [{ input: 'z', output: 'z_next', initial: -0.5 }];
    await exported(engine('m.engine', batched), ...contract({ state }));
    const [initial] = configOf().sequence_batching?.state?.[0]?.initial_state ?? [];
    expect(initial).toMatchObject({ data_file: 'z', dims: [3] });
    expect(initial).not.toHaveProperty('zero_data');
    // -0.5 in FP16 is 0xb800, little-endian.
    expect([...readFileSync(join(models, 'classifier', 'initial_state', 'z'))]).toEqual([
      0, 0xb8, 0, 0xb8, 0, 0xb8,
    ]);
  });

  test.each<[string, EngineFacts, object, readonly number[]]>([
    [
      'whose batch is the second axis',
      {
        inputs: [frames, tensor('z', [2, null, 3])],
        outputs: [tensor('y', [null, 8]), tensor('z_next', [2, null, 3])],
        recipe: {
          profiles: profiles([
            [2, 1, 3],
            [2, 2, 3],
            [2, 4, 3],
          ]),
        },
      },
      {},
      [2, 1, 3],
    ],
    [
      "whose first axis is another than the signal's",
      batched,
      {
        inputs: [
          { name: 'x', shape: ['B', 8, 'T'] },
          { name: 'z', shape: ['S', 3] },
        ],
      },
      [1, 3],
    ],
  ])('%s: no batching, complete shapes, and a sentence', async (_what, facts, content, first) => {
    const { warnings } = await exported(engine('m.engine', facts), ...contract(content));
    const { max_batch_size: maxBatch = 0, input, sequence_batching: sequences } = configOf();
    expect(maxBatch).toBe(0);
    expect(input?.[0]?.dims).toEqual([-1, 8, -1]);
    expect(sequences?.state?.[0]?.initial_state?.[0]?.dims).toEqual(first);
    expect(warnings).toHaveLength(1);
  });

  const states = (
    pairs: Readonly<Record<string, string>>,
    shape: readonly (number | null)[],
  ): EngineFacts => ({
    inputs: [tensor('x', [null, 8]), ...Object.keys(pairs).map((name) => tensor(name, [...shape]))],
    outputs: [tensor('y', [null, 8]), ...Object.values(pairs).map((name) => tensor(name, [...shape]))],
    recipe: {
      profiles: [
        Object.fromEntries(
          ['x', ...Object.keys(pairs)].map((name) => {
            const sizes = name === 'x' ? [8] : shape.slice(1).map((size) => size ?? 1);
            return [name, range([1, ...sizes], [1, ...sizes], [2, ...sizes])];
          }),
        ),
      ],
    },
  });
  const feeding = (pairs: Readonly<Record<string, string>>) =>
    contract({ state: Object.entries(pairs).map(([input, output]) => ({ input, output })) });

  test('is rejected where Triton would feed one state into another', async () => {
    // "h_len_out" sorts before "h_out", "h" before "h_len".
    const swapped = { h: 'h_out', h_len: 'h_len_out' };
    const path = engine('swapped.engine', states(swapped, [null, 3]));
    expect(await code(path, ...feeding(swapped))).toBe('TF_SERVING_REFUSED');
    expect((await exported(path, ...feeding(swapped), '--force')).warnings).toHaveLength(1);
    const sorted = { h: 'h_next', h_len: 'h_next_len' };
    const other = engine('sorted.engine', states(sorted, [null, 3]));
    expect((await exported(other, ...feeding(sorted))).warnings).toEqual([]);
  });

  test('leaves a [B] state, for which Triton allocates nothing beside a batch, to the client', async () => {
    const pairs = { h: 'h_out', h_len: 'h_len_out' };
    const [facts, lengths] = [states({ h: 'h_out' }, [null, 3]), states({ h_len: 'h_len_out' }, [null])];
    const both = {
      inputs: [...facts.inputs!, ...lengths.inputs!.slice(1)],
      outputs: [...facts.outputs!, ...lengths.outputs!.slice(1)],
      recipe: { profiles: [{ ...facts.recipe!.profiles![0], ...lengths.recipe!.profiles![0] }] },
    };
    const { models: written, warnings } = await exported(engine('m.engine', both), ...feeding(pairs));
    expect(written[0]).toMatchObject({
      maxBatchSize: 2,
      states: [{ input: 'h', output: 'h_out', initial: 0 }],
    });
    expect(configOf().input?.map(({ name }) => name)).toEqual(['x', 'h_len']);
    expect(configOf().output?.map(({ name }) => name)).toEqual(['y', 'h_len_out']);
    expect(warnings).toHaveLength(1);
  });

  test.each<[string, object | string, string]>([
    ['is of another form', { schema: 'trtforge.other/1' }, 'TF_CONTRACT_INVALID'],
    ['has an unknown key', { asserts: [] }, 'TF_CONTRACT_INVALID'],
    [
      'has an unknown key in a state',
      { state: [{ input: 'z', output: 'z_next', inital: 1 }] },
      'TF_CONTRACT_INVALID',
    ],
    ['is not JSON', '{', 'TF_CONTRACT_INVALID'],
    ['names a state that the engine lacks', { state: [{ input: 'q', output: 'q2' }] }, 'TF_SERVING_REFUSED'],
    ['feeds back another shape', { state: [{ input: 'z', output: 'y' }] }, 'TF_SERVING_REFUSED'],
  ])('a contract that %s is rejected', async (_what, content, expected) => {
    const args = contract(typeof content === 'object' ? content : {});
    if (typeof content === 'string') writeFileSync(args[1]!, content);
    expect(await code(engine('m.engine', batched), ...args)).toBe(expected);
  });
});

describe('what Triton would not serve is rejected before anything is written', () => {
  const withInput = (...input: Parameters<typeof tensor>): EngineFacts => ({
    inputs: [tensor(...input)],
    recipe: {},
  });
  test.each<[string, EngineFacts]>([
    ['an engine of TensorRT-RTX', { rtx: true }],
    ['a type that it does not carry', withInput('x', [1, 8], 'float8_e4m3fn')],
    ['a tensor without a rank', withInput('x', null)],
    ['an empty tensor', withInput('x', [1, 0])],
    ['a scalar', { outputs: [tensor('y', [])] }],
    ['a path for a name', withInput('../../etc/passwd', [1, 8])],
    ['a control character in a name', withInput('x\u001b[2J', [1, 8])],
    ['no name', withInput('', [1, 8])],
    ['a batch that no field takes', { recipe: { profiles: [profile(1, 2 ** 53 - 1, 2 ** 53 - 1)] } }],
  ])('%s', async (_what, facts) => {
    expect(await code(engine('m.engine', facts))).toBe('TF_SERVING_REFUSED');
    expect(existsSync(models)).toBe(false);
    expect(readdirSync(folder).sort()).toEqual(['m.engine', 'm.engine.passport.json']);
  });

  test('an engine for 2,000 GPUs', async () => {
    const path = engine('m.engine');
    const passport = JSON.parse(readFileSync(`${path}.passport.json`, 'utf8'));
    const { document } = passport.identity;
    document.target.computeCapabilities = Array.from({ length: 2000 }, (_, at) => at + 1);
    passport.identity.digest = identityDigest(document);
    writeFileSync(`${path}.passport.json`, JSON.stringify(passport));
    expect(await code(path)).toBe('TF_PASSPORT_INVALID');
  });

  test('an engine of TensorRT-RTX is written by --force, with a warning', async () => {
    const { warnings } = await exported(engine('m.engine', { rtx: true }), '--force');
    expect(warnings).toHaveLength(1);
    expect(configOf().cc_model_filenames).toEqual({ '8.9': 'sm_89.plan' });
  });

  test('a plan without a passport, an engine that was changed, and one that is not there', async () => {
    const path = engine('m.engine');
    writeFileSync(path, Buffer.concat([readFileSync(path).subarray(0, -1), Buffer.from('!')]));
    expect(await code(path)).toBe('TF_ENGINE_DIGEST_MISMATCH');
    rmSync(`${path}.passport.json`);
    expect(await code(path)).toBe('TF_PASSPORT_MISSING');
    expect(await code('nowhere')).toBe('TF_USAGE');
  });

  test('engines of different signatures, and of different numbers of profiles', async () => {
    const one = engine('one.engine');
    const two = engine('two.engine', { capability: 120, outputs: [tensor('y', [null, 11])] });
    expect(await code(one, two)).toBe('TF_SERVING_REFUSED');
    const more = { capability: 90, recipe: { profiles: [profile(1, 4, 16), profile(1, 1, 1)] } };
    expect(await code(one, engine('three.engine', more))).toBe('TF_SERVING_REFUSED');
  });

  test('engines without a batch in common; a smallest batch above 1 is a warning', async () => {
    const small = engine('small.engine', { recipe: { profiles: [profile(1, 2, 4)] } });
    const from = (min: number) =>
      engine(`from${min}.engine`, { capability: 90, recipe: { profiles: [profile(min, 8, 16)] } });
    expect(await code(small, from(8))).toBe('TF_SERVING_REFUSED');
    const { models: written, warnings } = await exported(small, from(2));
    expect([written[0]?.maxBatchSize, warnings.length]).toEqual([4, 1]);
  });

  test('two GPUs of one capability, until one of them is chosen', async () => {
    const t4 = engine('t4.engine', { capability: 75, gpu: 'Tesla T4' });
    const turing = engine('turing.engine', { capability: 75, gpu: 'NVIDIA GeForce RTX 2080' });
    expect(await code(t4, turing)).toBe('TF_SERVING_REFUSED');
    expect(await code(t4, turing, '--gpu', 'A100')).toBe('TF_SERVING_REFUSED');
    await exported(t4, turing, '--gpu', 'rtx 2080');
    expect(readFileSync(join(models, 'classifier', '1', 'sm_75.plan'))).toEqual(readFileSync(turing));
  });

  test('a part of two names, and not one that is part of another', async () => {
    const l4 = engine('l4.engine', { gpu: 'NVIDIA L4' });
    const l40s = engine('l40s.engine', { gpu: 'NVIDIA L40S' });
    expect(await code(l4, l40s, '--gpu', 'L4')).toBe('TF_SERVING_REFUSED');
    await exported(l4, l40s, '--gpu', 'nvidia l4');
    expect(readFileSync(join(models, 'classifier', '1', 'sm_89.plan'))).toEqual(readFileSync(l4));
  });

  test.each(['../out', 'a/b', '.hidden', '', 'a\nb', 'x'.repeat(300)])('the name %j', async (name) => {
    expect(await code(engine('m.engine'), '--name', name)).toBe('TF_USAGE');
  });

  test.each([
    ['--delay', '5'],
    ['--version', '0'],
    ['--instances', '0'],
  ])('%s %s', async (...args) => {
    expect(await code(engine('m.engine'), ...args)).toBe('TF_USAGE');
  });
});

describe('a repository that is there', () => {
  test('gets the next version whole, and keeps the one before', async () => {
    const first = engine('one.engine');
    await exported(first);
    const next = await exported(engine('two.engine', { recipe: { profiles: [profile(1, 2, 8)] } }));
    expect(next.models[0]).toMatchObject({ version: 2, maxBatchSize: 8 });
    expect(configOf()).toMatchObject({ max_batch_size: 8, parameters: { 'trtforge.identity.8.9': {} } });
    expect(readFileSync(join(models, 'classifier', '1', 'sm_89.plan'))).toEqual(readFileSync(first));
    expect(readdirSync(join(models, 'classifier')).sort()).toEqual(['1', '2', 'config.pbtxt']);
    expect(readdirSync(models)).toEqual(['classifier']);
    expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  test('serves the version that was asked for, which is replaced by --force alone', async () => {
    const path = engine('m.engine');
    await exported(path, '--version', '7');
    expect(configOf().version_policy).toEqual({ specific: { versions: [7] } });
    expect(await code(path, '--version', '7')).toBe('TF_SERVING_REFUSED');
    const other = engine('other.engine');
    await exported(other, '--version', '7', '--force');
    expect(readFileSync(join(models, 'classifier', '7', 'sm_89.plan'))).toEqual(readFileSync(other));
    expect(readdirSync(models)).toEqual(['classifier']);
  });

  test('keeps a configuration that another program wrote', async () => {
    mkdirSync(join(models, 'classifier'), { recursive: true });
    writeFileSync(join(models, 'classifier', 'config.pbtxt'), 'name: "classifier"\n');
    const path = engine('m.engine');
    expect(await code(path)).toBe('TF_SERVING_REFUSED');
    expect(readdirSync(join(models, 'classifier'))).toEqual(['config.pbtxt']);
    await exported(path, '--force');
    expect(configOf().max_batch_size).toBe(16);
  });

  test('that is a file is an error, and nothing is left beside it', async () => {
    writeFileSync(models, '');
    expect(await code(engine('m.engine'))).toBe('TF_WRITE_FAILED');
    expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([]);
  });
});

describe('engines of the store', () => {
  beforeEach(async () => {
    const engines = [
      engine('ada.engine'),
      engine('blackwell.engine', { capability: 120 }),
      engine('other.engine', { model: 'b'.repeat(64), name: 'other', capability: 120 }),
    ];
    const { exitCode } = await trtforge(['cache', 'import', ...engines, '--json'], environment());
    expect(exitCode).toBe(0);
  });

  test('come by a part of their name, with those of the same model and recipe for other GPUs', async () => {
    const { models: written } = await exported('classifier_aaaa_sm_89');
    expect(written[0]?.plans.map(({ capability }) => capability)).toEqual(['8.9', '12.0']);
  });

  test('come alone by their identity', async () => {
    const { json } = await trtforge(['cache', 'ls', '--json'], environment());
    const { engines } = json<{ engines: { name: string; identity: string }[] }>();
    const ada = engines.find(({ name }) => name.includes('sm_89'))!;
    const { models: written } = await exported(ada.identity.slice(0, 12));
    expect(written[0]?.plans.map(({ identity }) => identity)).toEqual([ada.identity]);
  });

  test('are exported with the defaults by cache export, a model each', async () => {
    const args = ['cache', 'export', models, '--as', 'triton', '--json'];
    const { exitCode, json } = await trtforge(args, environment());
    expect(exitCode).toBe(0);
    expect(json<{ engines: unknown[] }>().engines).toHaveLength(3);
    expect(configOf().cc_model_filenames).toEqual({ '8.9': 'sm_89.plan', '12.0': 'sm_120.plan' });
    expect(configOf('other').max_batch_size).toBe(16);
  });
});

test('an engine is exported where a trusted key signed it, and not where another did', async () => {
  const file = engine('signed.engine');
  const store = openLocalStore(join(folder, 'store'), environment());
  await store.put(file, readPassport(file));
  const keys = ['own.pem', 'other.pem'].map((name) => join(folder, name));
  for (const key of keys) await trtforge(['cache', 'keygen', '-o', key], environment());
  const trusting = (key = '') => ['classifier', '--require-signature', '--trust-key', `${key}.pub`];
  expect(await code(...trusting(keys[0]))).toBe('TF_SIGNATURE_INVALID');
  await trtforge(['cache', 'sign', '--sign-key', keys[0]!], environment());
  expect(await code(...trusting(keys[1]))).toBe('TF_SIGNATURE_INVALID');
  expect((await exported(...trusting(keys[0]))).models).toHaveLength(1);
});
