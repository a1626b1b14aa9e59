import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readContract } from '../../../../src/formats/contract/file.js';
import { openReference, type ReferenceChunk } from '../../../../src/formats/reference/reference.js';
import { float32Values, numbersOf } from '../../../../src/formats/tensor/tensor.js';
import { checkContract } from '../../../../src/products/streaming/check/check.js';
import { draftContract } from '../../../../src/products/streaming/record/draft.js';
import { planChunks } from '../../../../src/products/streaming/record/inputs.js';
import { recordReference } from '../../../../src/products/streaming/record/record.js';
import { recordResultSchema } from '../../../../src/products/streaming/record/result.js';
import { ids, modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { encoderModel } from '../streaming-encoder.js';

const CONTRACT = join(import.meta.dirname, '../../../fixtures/contracts/batch-first.contract.json');
const folder = mkdtempSync(join(tmpdir(), 'trtforge-record-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let model = '';
beforeAll(async () => {
  model = await encoderModel();
});

const request = (changes: object = {}) => ({
  file: model,
  contract: CONTRACT,
  chunks: 6,
  seed: 42,
  batch: 1,
  threads: 1,
  output: join(folder, 'ref.jsonl'),
  ...changes,
});
async function chunksOf(path: string): Promise<ReferenceChunk[]> {
  using reference = openReference(path);
  const chunks: ReferenceChunk[] = [];
  for await (const chunk of reference.chunks()) chunks.push(chunk);
  return chunks;
}

describe('recording a reference', () => {
  test.each([{ chunks: 0 }, { threads: -1 }, { seed: 0.5 }])('rejects %j', async (changes) => {
    const option = Object.keys(changes)[0];
    await expect(recordReference(request(changes))).rejects.toMatchObject({
      code: 'TF_USAGE',
      details: { option },
    });
  });

  test('feeds state back, follows the schedule and keeps to the cache-length rule', async () => {
    const result = await recordReference(request());
    expect(recordResultSchema.parse(result)).toEqual(result);
    expect(result).toMatchObject({ chunks: 6, violations: [], warnings: [] });
    const chunks = await chunksOf(result.output);
    expect(chunks.map(({ inputs }) => inputs.get('audio_signal')?.shape[2])).toEqual([
      41, 57, 57, 57, 57, 57,
    ]);
    expect(chunks.map(({ meta }) => meta.stateLength)).toEqual([1, 4, 7, 10, 13, 16]);
    for (const [at, { inputs, meta }] of chunks.entries()) {
      const before = chunks[at - 1];
      expect(meta.encodedLength).toBe(3);
      expect(meta.stateLengthRaw).toBe(meta.stateLength);
      if (before === undefined) continue;
      for (const name of ['cache_last_channel', 'cache_last_channel_len'])
        expect(inputs.get(name)?.bytes).toEqual(before.outputs.get(`${name}_out`)?.bytes);
    }
  });

  test('warns where the model follows another cache-length rule than the contract', async () => {
    const stated = JSON.parse(readFileSync(CONTRACT, 'utf8'));
    stated.streaming.cache_drop_size = 4;
    const path = join(folder, 'other-rule.json');
    writeFileSync(path, JSON.stringify(stated));
    const { warnings } = await recordReference(
      request({ contract: path, output: join(folder, 'rule.jsonl') }),
    );
    expect(warnings).toEqual([expect.stringMatching(/ is 0\. .* a cache_drop_size of 3\b/)]);
  });

  test('names the chunk that the model cannot take', async () => {
    const fours = await modelFile((graph) => {
      graph.input('signal', 'float32', [1, 'T']);
      graph.initializer('four', ids([2], [-1, 4]));
      graph.node('Reshape', { inputs: ['signal', 'four'], outputs: ['rows'] });
      graph.output('rows', 'float32', ['N', 4]);
    });
    const output = join(folder, 'short.jsonl');
    const asked = request({ file: fours, contract: undefined, schedule: [4, 3], output });
    await expect(recordReference(asked)).rejects.toMatchObject({
      code: 'TF_ONNXRUNTIME_FAILED',
      message: expect.stringMatching(/^Chunk 1, of 3 frames, cannot be run\. /),
    });
    expect(existsSync(output)).toBe(false);
  });

  test('states who made it, of what and how', async () => {
    const result = await recordReference(request());
    using reference = openReference(result.output);
    expect(reference.header.provenance).toEqual(result.provenance);
    expect(result.provenance).toMatchObject({
      tool: 'trtforge',
      seed: 42,
      schedule: [41, 57],
      precision: 'float32',
      tf32: false,
      model: { kind: 'model', digest: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    expect(result.repeat).toBeNull();
    const first = JSON.parse(readFileSync(result.output, 'utf8').split('\n')[1] ?? '');
    expect(Object.keys(first)).toEqual(['chunk_idx', 'inputs', 'outputs', 'metadata']);
    expect(first.metadata.schedule).toEqual({
      start: 17,
      chunk_size: 48,
      shift_size: 24,
      pre_encode: 9,
      slice_start: 8,
      slice_end: 65,
    });
  });

  test('chunks that overlap agree on the frames they share', async () => {
    const [first, second] = await chunksOf((await recordReference(request())).output);
    const frame = (chunk: ReferenceChunk, at: number) => {
      const { shape } = chunk.inputs.get('audio_signal')!;
      const values = float32Values(chunk.inputs.get('audio_signal')!);
      return Array.from({ length: 8 }, (_, band) => values[band * shape[2]! + at]);
    };
    expect(frame(second!, 0)).toEqual(frame(first!, 8));
    expect(frame(second!, 32)).toEqual(frame(first!, 40));
    expect(frame(second!, 1)).not.toEqual(frame(first!, 8));
  });

  test('the same seed gives the same stream, another seed another', async () => {
    const signal = async (seed: number, output: string) => {
      const chunks = await chunksOf(
        (await recordReference(request({ seed, output: join(folder, `${output}.jsonl`) }))).output,
      );
      return chunks.map(({ inputs }) => Buffer.from(inputs.get('audio_signal')!.bytes).toString('hex'));
    };
    const [once, again, other] = [await signal(1, 'a'), await signal(1, 'b.jsonl'), await signal(2, 'c')];
    expect(again).toEqual(once);
    expect(other).not.toEqual(once);
  });

  test('reports promises that the model breaks, and repairs nothing', async () => {
    const result = await recordReference(
      request({ file: await encoderModel({ drop: 10 }), output: join(folder, 'bad.jsonl') }),
    );
    expect(result.violations).toMatchObject([
      { tensor: 'cache_last_channel_len_out', chunk: 0, kind: 'bounded-by-capacity' },
      { tensor: 'cache_last_channel_len_out', chunk: 0, kind: 'range' },
      { tensor: 'cache_last_channel_len_out', chunk: 1, kind: 'monotonic' },
    ]);
    const lengths = (await chunksOf(result.output)).map(
      ({ outputs }) => numbersOf(outputs.get('cache_last_channel_len_out')!)[0],
    );
    expect(lengths).toEqual([-6, -10, -14, -18, -22, -26]);
  });

  test('needs no contract where names and a schedule are enough', async () => {
    const result = await recordReference(
      request({ contract: undefined, schedule: [41, 57], output: join(folder, 'drafted.jsonl'), batch: 2 }),
    );
    expect(result).toMatchObject({ contract: null, violations: [] });
    const chunks = await chunksOf(result.output);
    expect(chunks[5]?.inputs.get('cache_last_channel')?.shape).toEqual([2, 2, 16, 8]);
    expect(chunks[5]?.meta.stateLength).toBe(16);
  });

  test.each([
    ['named', 'N'],
    ['without a name', null],
  ])('records states whose batch is the second axis, %s', async (_what, batch) => {
    const file = await modelFile((graph) => {
      graph.input('x', 'float32', ['N', 39, 80]);
      graph.input('cached_key', 'float32', [2, batch, 3]);
      graph.node('Relu', { inputs: ['x'], outputs: ['y'] });
      graph.node('Relu', { inputs: ['cached_key'], outputs: ['new_cached_key'] });
      graph.output('y', 'float32', ['N', 39, 80]);
      graph.output('new_cached_key', 'float32', [2, batch, 3]);
    });
    const output = join(folder, `second-${batch}.jsonl`);
    const { provenance } = await recordReference(
      request({ file, contract: undefined, chunks: 2, batch: 3, output }),
    );
    expect(provenance.schedule).toEqual([39]);
    const [, second] = await chunksOf(output);
    expect(second?.inputs.get('cached_key')?.shape).toEqual([2, 3, 3]);
  });

  test('rejects a contract of another model, an unknown size, and leaves nothing behind', async () => {
    const old = join(CONTRACT, '../layer-first.contract.json');
    await expect(
      recordReference(request({ contract: old, output: join(folder, 'x/no.jsonl') })),
    ).rejects.toMatchObject({
      code: 'TF_CONTRACT_INVALID',
      message: expect.stringMatching(/layer-first\.contract\.json/),
      remedy: expect.stringMatching(/stream draft/),
    });
    await expect(
      recordReference(request({ contract: undefined, output: join(folder, 'x/no.jsonl') })),
    ).rejects.toMatchObject({
      code: 'TF_USAGE',
    });
    const aborted = AbortSignal.abort();
    await expect(
      recordReference(request({ output: join(folder, 'x/no.jsonl') }), { signal: aborted }),
    ).rejects.toMatchObject({
      code: 'TF_CANCELLED',
    });
    expect(existsSync(join(folder, 'x')) ? readdirSync(join(folder, 'x')) : []).toEqual([]);
  });
});

describe('a schedule', () => {
  test('places chunks by shift and pre-encode frames; sizes of the user’s own do not overlap', () => {
    const contract = readContract(CONTRACT);
    expect(planChunks(contract, [41, 57], 4).map(({ start }) => start)).toEqual([0, 8, 32, 56]);
    expect(planChunks(contract, [40], 3).map(({ frames, start }) => [frames, start])).toEqual([
      [40, null],
      [40, null],
      [40, null],
    ]);
  });
});

describe('contract, model and reference together', () => {
  test('agree when all three belong together', async () => {
    const { output } = await recordReference(request());
    const check = await checkContract({ file: model, contract: CONTRACT, reference: output });
    expect(check).toMatchObject({ outcome: 'pass', findings: [], chunks: 6 });
    expect(check.predicted.map(({ stateOut }) => stateOut)).toEqual([1, 4, 7, 10, 13, 16, 16, 16]);
  });

  test('a reference of other weights is the data’s fault', async () => {
    const other = await encoderModel({ drop: 4 });
    const { output } = await recordReference(request({ file: other, output: join(folder, 'other.jsonl') }));
    const { outcome, findings } = await checkContract({
      file: model,
      contract: CONTRACT,
      reference: output,
    });
    expect(outcome).toBe('fail');
    expect(findings.map(({ id, wrong }) => [id, wrong])).toContainEqual(['other-weights', 'data']);
    expect(findings.map(({ id }) => id)).toContain('lengths-against-rule');
  });

  test('a draft is a contract that its model keeps', async () => {
    const path = join(folder, 'draft.json');
    const drafted = await draftContract(model, path, [41, 57]);
    expect(drafted.contract.state.map(({ output }) => output)).toEqual([
      'cache_last_channel_out',
      'cache_last_time_out',
      'cache_last_channel_len_out',
    ]);
    expect(await checkContract({ file: model, contract: path })).toMatchObject({
      outcome: 'pass',
      findings: [],
    });
  });
});
