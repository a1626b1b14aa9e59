import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { workOf } from '../../../src/events.js';
import { contractSchema } from '../../../src/formats/contract/contract.js';
import { filledTensor, nextState } from '../../../src/formats/contract/state.js';
import { float32Values, floatTensor } from '../../../src/formats/tensor/tensor.js';
import { readRepository } from '../../../src/products/triton/check/repository.js';
import { type ModelConfig, printModelConfig } from '../../../src/products/triton/model-config.js';
import { TritonClient } from '../../../src/products/triton/try/client.js';
import { findTriton, startTriton } from '../../../src/products/triton/try/server.js';
import { stageForStub } from '../../../src/products/triton/try/staged.js';
import { describeWith } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-triton-try-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const detector: ModelConfig = {
  name: 'detector',
  backend: 'tensorrt',
  max_batch_size: 4,
  input: [{ name: 'images', data_type: 'TYPE_FP32', dims: [3, 32, 32] }],
  output: [{ name: 'boxes', data_type: 'TYPE_FP16', dims: [6, 5] }],
  instance_group: [{ kind: 'KIND_GPU', count: 2 }],
  dynamic_batching: { preferred_batch_size: [4] },
  model_warmup: [
    {
      name: 'zeros',
      batch_size: 1,
      inputs: { images: { data_type: 'TYPE_FP32', dims: [3, 32, 32], zero_data: true } },
    },
  ],
};
const encoder: ModelConfig = {
  name: 'encoder',
  platform: 'tensorrt_plan',
  max_batch_size: 8,
  input: [
    { name: 'x', data_type: 'TYPE_FP32', dims: [4, -1] },
    { name: 'length', data_type: 'TYPE_INT64', dims: [1], reshape: { shape: [] } },
  ],
  output: [{ name: 'y', data_type: 'TYPE_FP32', dims: [3] }],
  sequence_batching: {
    oldest: { max_candidate_sequences: 4 },
    state: [
      {
        input_name: 'z',
        output_name: 'z_next',
        data_type: 'TYPE_FP32',
        dims: [2],
        initial_state: [{ name: 'zero', data_type: 'TYPE_FP32', dims: [2], zero_data: true }],
      },
    ],
  },
};

/** A repository with these models; plans are empty files, which the stub does not read. */
function repository(name: string, configs: readonly ModelConfig[]): string {
  for (const config of configs) {
    const own = join(folder, name, config.name ?? '');
    mkdirSync(join(own, '1'), { recursive: true });
    writeFileSync(join(own, '1', 'model.plan'), '');
    writeFileSync(join(own, 'config.pbtxt'), printModelConfig(config));
  }
  return join(folder, name);
}

describeWith('triton', "Triton's own server", (server) => {
  const environment = {
    ...process.env,
    PATH: `${server}${delimiter}${process.env.PATH}`,
    XDG_CACHE_HOME: join(folder, 'cache'),
  };
  const attempt = async (path: string) => {
    const { exitCode, json } = await trtforge(['triton', 'try', path, '--json'], environment);
    return { exitCode, answer: json() };
  };

  it('loads, warms up and answers; sequences keep their states', async () => {
    const path = repository('good', [detector, encoder]);
    const before = readFileSync(join(path, 'detector', 'config.pbtxt'));
    const { exitCode, answer } = await attempt(path);
    expect(answer).toMatchObject({
      outcome: 'pass',
      server: { version: 'triton 2.51.0', url: null, answeredBy: 'stub' },
      models: [
        {
          name: 'detector',
          ready: true,
          request: { outputs: [{ name: 'boxes', dtype: 'float16', shape: [1, 6, 5] }] },
          sequences: null,
          knownAnswer: null,
        },
        { name: 'encoder', ready: true, sequences: { outcome: 'pass' } },
      ],
      skipped: [],
    });
    expect(exitCode).toBe(0);
    // The user's files are not what was changed for this machine.
    expect(readFileSync(join(path, 'detector', 'config.pbtxt'))).toEqual(before);
    expect(existsSync(join(path, 'detector', '1', 'trtforge-stub.txt'))).toBe(false);
  });

  it.each<[string, ModelConfig, RegExp]>([
    [
      'a preferred size above the largest',
      { ...detector, dynamic_batching: { preferred_batch_size: [5] } },
      /preferred size/,
    ],
    ['another name', { ...detector, name: 'other' }, /unexpected directory name/],
    [
      'a warm-up of an input that is not there',
      {
        ...detector,
        model_warmup: [
          {
            name: 'w',
            batch_size: 1,
            inputs: { image: { data_type: 'TYPE_FP32', dims: [3, 32, 32], zero_data: true } },
          },
        ],
      },
      /image/,
    ],
  ])('is not passed with %s, in the words of the server', async (title, config, words) => {
    const path = repository(`bad ${title}`, [{ ...config, name: 'detector' }]);
    writeFileSync(join(path, 'detector', 'config.pbtxt'), printModelConfig(config));
    const { exitCode, answer } = await attempt(path);
    expect(answer).toMatchObject({
      outcome: 'fail',
      models: [{ name: 'detector', ready: false, reason: expect.stringMatching(words), request: null }],
    });
    expect(exitCode).toBe(1);
  });

  it('gives the reason of an ensemble, which the server names without quotes', async () => {
    const path = repository('ensemble', [
      detector,
      {
        name: 'both',
        platform: 'ensemble',
        max_batch_size: 4,
        input: [{ name: 'image', data_type: 'TYPE_FP32', dims: [3, 16, 16] }],
        output: [{ name: 'found', data_type: 'TYPE_FP16', dims: [6, 5] }],
        ensemble_scheduling: {
          step: [
            {
              ...{ model_name: 'detector', model_version: -1 },
              ...{ input_map: { images: 'image' }, output_map: { boxes: 'found' } },
            },
          ],
        },
      },
    ]);
    const { answer } = await attempt(path);
    expect(answer).toMatchObject({
      models: [{ name: 'both', reason: expect.stringMatching(/ensemble both/) }, { name: 'detector' }],
    });
  });

  it('fails a configuration that cannot be read, and tries the other models', async () => {
    const path = repository('unreadable', [detector, encoder]);
    writeFileSync(join(path, 'detector', 'config.pbtxt'), 'nam: "detector"');
    const { exitCode, answer } = await attempt(path);
    expect(answer).toMatchObject({
      outcome: 'fail',
      models: [
        { name: 'detector', ready: false },
        { name: 'encoder', ready: true },
      ],
    });
    expect(exitCode).toBe(1);
  });

  it('fails a byte-order mark', async () => {
    const path = repository('marked', [detector]);
    const file = join(path, 'detector', 'config.pbtxt');
    writeFileSync(file, `\ufeff${readFileSync(file, 'utf8')}`);
    expect(await attempt(path)).toMatchObject({
      exitCode: 1,
      answer: { outcome: 'fail', models: [{ name: 'detector', ready: false }] },
    });
  });

  it.each(['docs', '.git'])('fails a folder %s, which the server takes for a model', async (name) => {
    const path = repository(`with ${name}`, [detector]);
    mkdirSync(join(path, name));
    expect(await attempt(path)).toMatchObject({
      exitCode: 1,
      answer: {
        models: [
          { name: 'detector', ready: true },
          { name, ready: false, reason: expect.stringContaining('config.pbtxt') },
        ],
      },
    });
  });

  it('fails states that change nothing, and does not judge those of the client', async () => {
    const output = [{ name: 'y', data_type: 'TYPE_BOOL', dims: [3] }];
    const { answer } = await attempt(repository('unchanged', [{ ...encoder, output }]));
    expect(answer).toMatchObject({ outcome: 'fail', models: [{ sequences: { outcome: 'fail' } }] });
    const { state: _, ...batching } = encoder.sequence_batching ?? {};
    const own = await attempt(repository('stateless', [{ ...encoder, sequence_batching: batching }]));
    expect(own).toMatchObject({
      exitCode: 0,
      answer: { outcome: 'pass', models: [{ sequences: { outcome: null, reasons: [expect.any(String)] } }] },
    });
  });

  it('leaves models of other back ends out by name', async () => {
    const { answer } = await attempt(
      repository('mixed', [detector, { name: 'tokenizer', backend: 'python', max_batch_size: 0 }]),
    );
    expect(answer).toMatchObject({
      models: [{ name: 'detector' }],
      skipped: [{ name: 'tokenizer', reason: expect.stringContaining('python') }],
    });
  });

  it('keeps states as our own closed loop does, with sequences in turns', async () => {
    const staged = join(folder, 'staged');
    mkdirSync(staged);
    stageForStub(
      readRepository(repository('states', [encoder]), () => {}),
      staged,
    );
    const work = workOf({ environment });
    await using triton = await startTriton(await findTriton(work), staged, work);
    const client = new TritonClient(triton.url);
    const contract = contractSchema.parse({
      schema: 'trtforge.contract/1',
      name: 'encoder',
      inputs: [{ name: 'x' }, { name: 'z', dtype: 'float32', shape: [1, 2] }],
      outputs: [{ name: 'y' }, { name: 'z_next' }],
      state: [{ input: 'z', output: 'z_next' }],
    });
    // The engine that the stub stands for, and our closed loop around it.
    const loops = [0, 1].map(() => {
      let state = new Map([['z', filledTensor('float32', [1, 2], 0)]]) as ReturnType<typeof nextState>;
      return (x: number) => {
        const [before = 0] = float32Values(state.get('z')!);
        const next = floatTensor('float32', [1, 2], new Float32Array(2).fill(before + 1));
        state = nextState(contract, new Map([['z_next', next]]));
        return x + 7 + before;
      };
    });
    for (let step = 0; step < 6; step++)
      for (const [at, loop] of loops.entries()) {
        const x = 10 * at + step;
        const outputs = await client.infer(
          'encoder',
          new Map([
            ['x', floatTensor('float32', [1, 4, 5], new Float32Array(20).fill(x))],
            ['length', { dtype: 'int64', shape: [1, 1], bytes: new Uint8Array(BigInt64Array.of(7n).buffer) }],
          ]),
          { id: at + 1, start: step === 0, end: step === 5 },
        );
        const y = outputs.get('y')!;
        expect([...float32Values(y)]).toEqual(new Array(3).fill(loop(x)));
      }
  });
});
