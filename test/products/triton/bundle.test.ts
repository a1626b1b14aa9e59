import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { type TritonExport, tritonExportSchema } from '../../../src/products/triton/export/export-models.js';
import { readModelConfig } from '../../../src/products/triton/model-config.js';
import { trtforge } from '../../support/trtforge.js';
import { range, tensor, writeEngine } from './engines.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-triton-bundle-'));
const models = join(folder, 'models');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const BLANK = 2;
const meta = join(folder, 'model_meta.json');
writeFileSync(
  meta,
  JSON.stringify({
    ...{ model_name: 'nvidia/tiny-tdt', blank_id: BLANK, duration_values: [0, 1], labels: ['▁he', 'llo'] },
    streaming: {
      ...{ chunk_size: [4, 3], shift_size: [4, 3], pre_encode_cache_size: [0, 1], sampling_frames: [1, 2] },
    },
  }),
);

/** Two mel bins; the names of a cache and its length tell that they are states. */
const encoder = writeEngine(folder, 'encoder.engine', {
  name: 'encoder',
  inputs: [
    tensor('audio_signal', [null, 2, null]),
    tensor('length', [null], 'int64'),
    tensor('cache', [null, 3]),
    tensor('cache_len', [null], 'int64'),
  ],
  outputs: [
    tensor('encoded', [null, 4, null]),
    tensor('lengths', [null], 'int64'),
    tensor('cache_out', [null, 3]),
    tensor('cache_len_out', [null], 'int64'),
  ],
  recipe: {
    profiles: [
      {
        audio_signal: range([1, 2, 4], [1, 2, 4], [8, 2, 4]),
        length: range([1], [1], [8]),
        cache: range([1, 3], [1, 3], [8, 3]),
        cache_len: range([1], [1], [8]),
      },
    ],
  },
});
const predictor = writeEngine(folder, 'predictor.engine', {
  name: 'predictor',
  inputs: [tensor('y', [null, null], 'int64'), tensor('h', [1, null, 3])],
  outputs: [tensor('g', [null, 5, null]), tensor('h_out', [1, null, 3])],
  recipe: { profiles: [{ y: range([1, 1], [1, 1], [8, 1]), h: range([1, 1, 3], [1, 1, 3], [1, 8, 3]) }] },
});
const joint = writeEngine(folder, 'joint.engine', {
  name: 'joint',
  inputs: [tensor('encoder_output', [null, 4, null]), tensor('predictor_output', [null, 5, null])],
  outputs: [tensor('logits', [null, null, null, 5])],
  recipe: {
    profiles: [
      {
        encoder_output: range([1, 4, 1], [1, 4, 1], [8, 4, 1]),
        predictor_output: range([1, 5, 1], [1, 5, 1], [8, 5, 1]),
      },
    ],
  },
});

interface Sent {
  readonly model: string;
  readonly parameters: { sequence_id?: number; sequence_start?: boolean; sequence_end?: boolean };
  readonly inputs: Readonly<Record<string, { shape: number[]; datatype: string; data: number[] }>>;
}

/** Answers as the three models would: two steps a chunk, and each step emits the next token of a script. */
async function fakeTriton(script: readonly (readonly [token: number, duration: number])[]) {
  const sent: Sent[] = [];
  let joined = 0;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    const { parameters, inputs } = JSON.parse(body);
    const model = /models\/tiny-tdt_(\w+)\/infer/.exec(request.url ?? '')?.[1] ?? 'none';
    const named = Object.fromEntries(inputs.map((input: { name: string }) => [input.name, input]));
    sent.push({ model, parameters, inputs: named });
    const [token, duration] = script[joined] ?? [BLANK, 1];
    const logits = [0, 1, BLANK].map((at) => (at === token ? 1 : 0)).concat(duration === 0 ? [1, 0] : [0, 1]);
    if (model === 'joint') joined++;
    const outputs = {
      encoder: [
        { name: 'encoded', shape: [1, 4, 2], data: [1, 10, 2, 20, 3, 30, 4, 40] },
        { name: 'cache_len_out', shape: [1, 1], data: [9] },
        { name: 'lengths', shape: [1, 1], data: [2] },
      ],
      predictor: [{ name: 'g', shape: [1, 5, 1], data: [5, 6, 7, 8, named.y?.data[0]] }],
      joint: [{ name: 'logits', shape: [1, 1, 1, 5], data: logits }],
    }[model];
    response.end(JSON.stringify({ outputs }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { sent, address, [Symbol.dispose]: () => server.close() };
}

const run = async (...args: readonly string[]) =>
  trtforge(['triton', 'export', ...args, '-o', models, '--json'], { XDG_CACHE_HOME: join(folder, 'xdg') });

test('a bundle becomes three models, and a client that decodes with them', async () => {
  const { json, exitCode } = await run(joint, encoder, predictor, '--bundle', meta);
  expect(exitCode).toBe(0);
  const { ok: _, command: __, exitCode: ___, ...rest } = json();
  const result: TritonExport = tritonExportSchema.parse(rest);
  expect(result.models.map(({ name, maxBatchSize }) => [name, maxBatchSize])).toEqual([
    ['tiny-tdt_encoder', 8],
    ['tiny-tdt_predictor', 0],
    ['tiny-tdt_joint', 8],
  ]);
  expect(result.models.map(({ states }) => states.map(({ input }) => input))).toEqual([['cache'], ['h'], []]);
  const config = readModelConfig(join(models, 'tiny-tdt_predictor', 'config.pbtxt'));
  expect(config.sequence_batching?.state?.[0]).toMatchObject({
    dims: [1, -1, 3],
    initial_state: [{ dims: [1, 1, 3] }],
  });

  const [data, program] = result.client.map((file) => join(models, file)) as [string, string];
  expect(existsSync(program)).toBe(true);
  // Two tokens at the first step, which leads one step on; then blanks to the end of both chunks.
  using triton = await fakeTriton([
    [0, 0],
    [1, 1],
  ]);
  process.env.TRITON = triton.address;
  const typed = join(folder, 'client.ts');
  writeFileSync(typed, readFileSync(program));
  const { transcribe } = await import(/* @vite-ignore */ pathToFileURL(typed).href);
  const features = Float32Array.from({ length: 2 * 7 }, (_, at) => at);
  expect(await transcribe(features, JSON.parse(readFileSync(data, 'utf8')))).toEqual([0, 1]);

  const of = (model: string) => triton.sent.filter((each) => each.model === model);
  expect(of('encoder').map(({ parameters }) => parameters)).toEqual([
    { sequence_id: expect.any(Number), sequence_start: true, sequence_end: false },
    { sequence_id: of('encoder')[0]?.parameters.sequence_id, sequence_start: false, sequence_end: true },
  ]);
  expect(of('encoder').map(({ inputs }) => inputs.audio_signal?.data)).toEqual([
    [0, 1, 2, 3, 7, 8, 9, 10],
    [3, 4, 5, 6, 10, 11, 12, 13],
  ]);
  // Triton keeps no [B]: the client sends back what came.
  expect(of('encoder').map(({ inputs }) => inputs.cache_len?.data)).toEqual([[0], [9]]);
  // Triton batches the encoder, so [B] has a dimension more; it does not batch the predictor.
  expect(of('encoder')[0]?.inputs.length).toMatchObject({ shape: [1, 1], data: [4], datatype: 'INT64' });
  expect(
    of('predictor').map(({ inputs, parameters }) => [
      inputs.y?.data[0],
      parameters.sequence_start,
      parameters.sequence_end,
    ]),
  ).toEqual([
    [BLANK, true, false],
    [0, false, false],
    [1, false, false],
    [BLANK, false, true],
  ]);
  expect(of('joint')).toHaveLength(5);
  expect(of('joint')[0]).toMatchObject({
    parameters: {},
    inputs: {
      encoder_output: { shape: [1, 4, 1], data: [1, 2, 3, 4] },
      predictor_output: { shape: [1, 5, 1] },
    },
  });
  // A rest with fewer frames than are worth a chunk is not fed.
  await transcribe(new Float32Array(2 * 8), JSON.parse(readFileSync(data, 'utf8')));
  expect(of('encoder')).toHaveLength(4);
});

test.each([
  ['lacks a component', [encoder, joint]],
  [
    'has an engine of no component',
    [encoder, predictor, joint, writeEngine(folder, 'vad.engine', { name: 'vad' })],
  ],
])('a bundle that %s is rejected', async (_what, engines) => {
  expect((await run(...engines, '--bundle', meta)).json().error?.code).toBe('TF_SERVING_REFUSED');
});

test('the client decodes by the facts that the decoder of the bundle finds', async () => {
  const exported = async (content: object) => {
    const path = join(folder, 'other_meta.json');
    writeFileSync(path, JSON.stringify({ model_name: 'other', ...content }));
    const { json } = await run(encoder, predictor, joint, '--bundle', path);
    const [data = ''] = json<TritonExport>().client ?? [];
    return data === '' ? json().error?.code : JSON.parse(readFileSync(join(models, data), 'utf8')).decoding;
  };
  // Five logits: two tokens, the blank among the labels, and what is left are durations.
  expect(await exported({ labels: ['<blk>', 'a', 'b'], streaming: null })).toEqual({
    ...{ tokenLogits: 3, blankId: 0, durations: [0, 1], labels: ['<blk>', 'a', 'b'], streaming: null },
  });
  expect(
    await exported({ streaming: { chunk_size: 4, shift_size: 4, sampling_frames: [1, 2] } }),
  ).toMatchObject({
    ...{ tokenLogits: 5, blankId: 4, durations: [] },
    streaming: { chunk: { first: 4, rest: 4 }, before: { first: 0, rest: 0 }, fewest: { first: 1, rest: 2 } },
  });
  expect(await exported({ blank_id: 9 })).toBe('TF_SERVING_REFUSED');
  // Misspelt fields are named, as by every verb that reads the file.
  const misspelt = join(folder, 'misspelt_meta.json');
  writeFileSync(misspelt, JSON.stringify({ model_name: 'misspelt', blnk_id: 0 }));
  const { json } = await run(encoder, predictor, joint, '--bundle', misspelt);
  expect(json<TritonExport>().warnings[0]).toContain('"blnk_id"');
});

test('a file that is not a meta file is rejected', async () => {
  const path = join(folder, 'list.json');
  writeFileSync(path, '[]');
  expect((await run(encoder, predictor, joint, '--bundle', path)).json().error?.code).toBe(
    'TF_BUNDLE_META_INVALID',
  );
});
