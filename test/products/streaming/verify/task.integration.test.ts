import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { modelFamilies } from '../../../../examples/models/catalogue.js';
import { readContract } from '../../../../src/formats/contract/file.js';
import { taskKind } from '../../../../src/products/bundle/token-task.js';
import { recordReference } from '../../../../src/products/streaming/record/record.js';
import type { ParityRequest } from '../../../../src/products/streaming/verify/options.js';
import {
  type JudgedTask,
  type ParityResult,
  parityResultSchema,
  type StreamTask,
} from '../../../../src/products/streaming/verify/result.js';
import { verifyAgainstReference } from '../../../../src/products/streaming/verify/verify.js';
import { changeMeta, changeModel, writeBundle } from '../../../support/bundle.js';
import { describeWith } from '../../../support/needs.js';
import { type Answer, trtforge } from '../../../support/trtforge.js';
import { encoderModel } from '../streaming-encoder.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-task-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const CHUNKS = 12;

const judged = (task: StreamTask): JudgedTask => {
  if (task.kind === 'not-judged') throw new Error(task.why);
  return task;
};

describeWith('onnxruntime', 'the task of a streaming encoder, decoded by a bundle', () => {
  let decoder = '';
  let encoder = '';
  let reference = '';
  let contract: ParityRequest['contract'] = null;
  beforeAll(async () => {
    decoder = await writeBundle(join(folder, 'bundle'));
    [encoder = ''] = await streamingEncoder('encoder');
    const file = join(folder, 'encoder', 'encoder_streaming.contract.json');
    contract = readContract(file);
    reference = join(folder, 'reference.jsonl');
    await record(1, reference);
  });

  const streamingEncoder = (name: string): Promise<string[]> =>
    modelFamilies['streaming-encoder']!.write('tiny', join(folder, name), { seed: 1, external: false });
  const record = (batch: number, output: string) =>
    recordReference({
      file: encoder,
      contract: join(folder, 'encoder', 'encoder_streaming.contract.json'),
      chunks: CHUNKS,
      seed: 3,
      batch,
      output,
      threads: 1,
    });

  const verify = (candidate: string, more: Partial<ParityRequest> = {}) =>
    judge(candidate, { decoder, ...more });
  async function judge(candidate: string, more: Partial<ParityRequest>) {
    const request = { candidate, reference, mode: 'closed-loop', contract, threads: 1 } as const;
    const result = await verifyAgainstReference({ ...request, ...more }, { taskKinds: [taskKind] });
    expect(parityResultSchema.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
    return result;
  }

  /** The encoder with every matrix of its last layer changed. */
  async function changed(name: string, change: (value: number, index: number) => number): Promise<string> {
    const [path = ''] = await streamingEncoder(name);
    changeModel(path, ({ graph }) => {
      for (const tensor of graph!.initializer) {
        if (!tensor.name.startsWith('layers.1.') || tensor.dims.length < 2) continue;
        const bytes = Uint8Array.from(tensor.rawData);
        const values = new Float32Array(bytes.buffer);
        for (const [index, value] of values.entries()) values[index] = change(value, index);
        tensor.rawData = bytes;
      }
    });
    return path;
  }

  it('passes where every token and duration is the same', async () => {
    const { verdicts, task, outcome } = await verify(encoder);
    expect(verdicts).toEqual({ contract: 'pass', numeric: 'pass', task: 'pass' });
    expect(outcome).toBe('pass');
    const { decisions, agreed, durationsAgreed, emitted, ...rest } = judged(task);
    expect(rest).toMatchObject({ kind: 'transducer', output: 'encoder_output', decoder, different: 0 });
    expect(decisions).toBeGreaterThan(CHUNKS / 2);
    expect([agreed, durationsAgreed]).toEqual([decisions, decisions]);
    expect(emitted!.reference).toBeGreaterThan(0);
    expect(emitted).toMatchObject({ candidate: emitted!.reference, equal: true });
    expect(rest).toMatchObject({
      task: 'tokens',
      samples: CHUNKS,
      dataDigest: expect.stringMatching(/^[0-9a-f]{64}$/),
      metrics: [
        { name: 'token-agreement', value: 1, unit: 'share', higherIsBetter: true },
        { name: 'duration-agreement', value: 1 },
        { name: 'unexplained-differences', value: 0, higherIsBetter: false },
      ],
    });
  });

  it('is comparable with another candidate, not with another recording or another decoder', async () => {
    const keyOf = async (candidate: string, more: Partial<ParityRequest> = {}) =>
      judged((await verify(candidate, { mode: 'functional', ...more })).task).comparabilityKey;
    const key = await keyOf(encoder);
    expect(await keyOf(await changed('comparable', (value) => -2 * value))).toBe(key);
    expect(await keyOf(encoder, { decoder: await writeBundle(join(folder, 'elsewhere')) })).toBe(key);
    expect(await keyOf(encoder, { limit: CHUNKS - 1 })).not.toBe(key);
    const louder = await writeBundle(join(folder, 'louder'));
    changeModel(join(folder, 'louder', 'joint.onnx'), ({ graph }) => {
      graph!.initializer.find(({ dims }) => dims.length >= 2)!.rawData.fill(0, 0, 4);
    });
    expect(await keyOf(encoder, { decoder: louder })).not.toBe(key);
  });

  it('needs the kind of task that decodes, from any product that has it', async () => {
    const request = { candidate: encoder, reference, mode: 'closed-loop', contract, decoder } as const;
    await expect(verifyAgainstReference(request)).rejects.toMatchObject({
      code: 'TF_USAGE',
      details: { task: 'tokens', known: [] },
    });
  });

  it('fails another encoder: chunk, frame, what was decided, and by what margin', async () => {
    const other = await changed('other', (value) => -2 * value);
    const { verdicts, task, reasons } = await verify(other, { mode: 'functional' });
    expect(verdicts.task).toBe('fail');
    const { different, differences, decisions, agreed, durationsAgreed, emitted } = judged(task);
    expect(different).toBe(2 * decisions - agreed - durationsAgreed!);
    const [first] = differences;
    expect(first).toMatchObject({ chunk: expect.any(Number), at: [0, expect.any(Number)] });
    expect(first!.at[1]).toBeLessThan(3);
    expect(first!.candidate).not.toBe(first!.reference);
    expect(first!.referenceMargin).toBeGreaterThan(0);
    expect(emitted!.equal).toBe(false);
    expect(reasons.join('\n')).toMatch(
      new RegExp(
        `Task: chunk ${first!.chunk}, frame ${first!.at[1]}: ${first!.what} ${first!.candidate} where the reference has ${first!.reference}, by a margin of \\d`,
      ),
    );
  });

  it('passes errors that change no decision, though the numbers fail', async () => {
    const near = await changed('near', (value, index) => value * (1 + (index % 2 === 0 ? 3e-4 : -3e-4)));
    const { verdicts, task } = await verify(near, {
      atol: [{ name: null, value: 1e-7 }],
      rtol: [{ name: null, value: 1e-7 }],
    });
    expect(judged(task)).toMatchObject({ different: 0, emitted: { equal: true } });
    expect(verdicts).toMatchObject({ numeric: 'fail', task: 'pass' });
  });

  it('decodes every row of a batch by itself', async () => {
    const batched = join(folder, 'batched.jsonl');
    await record(2, batched);
    const { task } = await verify(encoder, { reference: batched });
    const single = judged((await verify(encoder)).task);
    expect(judged(task).decisions).toBeGreaterThan(single.decisions * 1.5);
    expect(judged(task)).toMatchObject({ different: 0, emitted: { equal: true } });
  });

  it('cannot decide about chunks that the candidate rejected', async () => {
    const narrow = join(folder, 'narrow', 'encoder_streaming.onnx');
    await streamingEncoder('narrow');
    changeModel(narrow, ({ graph }) => {
      const dims = graph!.input.find(({ name }) => name === 'audio_signal')!.type!.value;
      if (dims.case === 'tensorType') dims.value.shape!.dim[2]!.value = { case: 'dimValue', value: 57n };
    });
    const { task, verdicts } = await verify(narrow, { mode: 'functional' });
    expect(judged(task).unjudged).toEqual([0]);
    expect(verdicts.task).not.toBe('pass');
  });

  it('is not judged without a decoder, and states it', async () => {
    const result = await judge(encoder, {});
    expect(result.verdicts.task).toBeNull();
    expect(result.task).toMatchObject({ kind: 'not-judged' });
    expect(result.outcome).toBe('pass');
  });

  it.each([
    [
      'an output that is not there',
      { taskOutput: 'logits' },
      'TF_PARITY_MISFIT',
      /has no output logits to decide by/,
    ],
    [
      'a meta file that is not there',
      { decoder: join(folder, 'none.json') },
      'TF_FILE_NOT_FOUND',
      /none\.json/,
    ],
    [
      'an output of another shape',
      { taskOutput: 'cache_last_time_out' },
      'TF_BUNDLE_MISMATCH',
      /\[1, 2, 32, 4\]; the joint network/,
    ],
  ])('rejects %s by name', async (_case, more, code, message) => {
    await expect(verify(encoder, more)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  it('rejects an encoder of another width, and a bundle that cannot be decoded with', async () => {
    const other = await encoderModel();
    const own = join(folder, 'own.jsonl');
    await recordReference({
      file: other,
      chunks: 2,
      schedule: [41, 57],
      seed: 1,
      batch: 1,
      output: own,
      threads: 1,
    });
    const narrow = { reference: own, contract: null };
    await expect(verify(other, narrow)).rejects.toMatchObject({
      code: 'TF_BUNDLE_MISMATCH',
      message: expect.stringMatching(
        /encoder_output is \[1, 8, 3\]; the joint network .* takes encoder_output as/,
      ),
    });
    const blank = await writeBundle(join(folder, 'blank'));
    changeMeta(blank, { blank_id: 500, tokenizer_vocab_size: null, labels: null, joint_vocab_size: null });
    await expect(verify(encoder, { decoder: blank })).rejects.toMatchObject({ code: 'TF_BUNDLE_MISMATCH' });
  });

  it('is judged by the command line as requested', async () => {
    const other = await changed('told', (value) => Math.abs(value));
    const verified = async (candidate: string, ...more: readonly string[]) => {
      const line = ['stream', 'verify', candidate, '--reference', reference, '--threads', '1'];
      const { json } = await trtforge([...line, ...more, '--json']);
      return json<ParityResult & Answer>();
    };
    expect(await verified(encoder, '--decoder', decoder)).toMatchObject({ exitCode: 0, task: { decoder } });
    const scores = ['--task-output', 'encoder_output', '--mode', 'functional', '--min-agreement'];
    const [strict, lenient] = [await verified(other, ...scores, '1'), await verified(other, ...scores, '0')];
    expect([judged(strict.task).minAgreement, judged(lenient.task).minAgreement]).toEqual([1, 0]);
    // The share alone is one reason less; decisions with a margin fail by either.
    expect(strict.reasons.length - lenient.reasons.length).toBe(1);
  });

  it('of class scores is the largest along the last axis, at every place', async () => {
    const scores = { taskOutput: 'encoder_output' };
    const same = await judge(encoder, scores);
    expect(judged(same.task)).toMatchObject({
      kind: 'argmax',
      decoder: null,
      decisions: CHUNKS * 32,
      agreed: CHUNKS * 32,
      emitted: null,
    });
    expect(same.verdicts.task).toBe('pass');
    const other = await changed('scores', (value) => -2 * value);
    const { task, verdicts, reasons } = await judge(other, { ...scores, mode: 'functional' });
    expect(verdicts.task).toBe('fail');
    const { different, decisions, agreed, differences } = judged(task);
    expect(different).toBe(decisions - agreed);
    expect(differences[0]).toMatchObject({ what: 'class', at: [0, expect.any(Number)] });
    expect(differences).toHaveLength(20);
    expect(reasons.join('\n')).toMatch(/Task: chunk \d+, at \[0, \d+\]: class \d where the reference has \d/);
  });
});
