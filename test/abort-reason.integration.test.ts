import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { EventListener } from '../src/events.js';
import { writeNpy } from '../src/formats/tensor/npy.js';
import { tensorFrom } from '../src/formats/tensor/tensor.js';
import {
  buildOrLoad,
  compareOutputs,
  convertModel,
  explaining,
  forge,
  inspectModel,
  installToolchain,
  openSession,
  runFile,
  verifyModel,
} from '../src/index.js';
import { checkContract } from '../src/products/streaming/check/check.js';
import { recordReference } from '../src/products/streaming/record/record.js';
import { verifyAgainstReference } from '../src/products/streaming/verify/verify.js';
import { staticModel } from './native/tiny-models.js';
import { encoderModel } from './products/streaming/streaming-encoder.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-abort-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const model = staticModel(folder);
const encoder = await encoderModel();
const contract = join(import.meta.dirname, 'fixtures/contracts/batch-first.contract.json');
const reference = at('stream.jsonl');
const stream = { file: encoder, contract, chunks: 3, seed: 1, batch: 1, output: reference };
await recordReference(stream);
writeNpy(at('y.npy'), tensorFrom('float32', [2], new Float32Array(2)));

interface Context {
  readonly emit: EventListener;
  readonly signal: AbortSignal;
}

/** These have one step only. */
const inOneStep = ['inspectModel', 'openSession', 'compareOutputs', 'installToolchain', 'checkContract'];
const target = 'tensorrt-rtx:sm_89';
const calls: Readonly<Record<string, (context: Context) => Promise<unknown>>> = {
  forge: (context) => forge({ model, target, runRoot: at('run'), store: false }, context),
  buildOrLoad: (context) => buildOrLoad({ model, target, store: false, output: at('o.engine') }, context),
  explaining: ({ emit, signal }) =>
    explaining((heard) => verifyModel({ reference: model, candidate: model }, { emit: heard, signal }), {
      emit,
    }).then(),
  inspectModel: (context) => inspectModel(model, { checkWeights: true }, context),
  convertModel: (context) => convertModel(model, at('typed.onnx'), { precision: 'fp16' }, context),
  runFile: (context) => runFile({ file: model, sources: [{ kind: 'random' }], iterations: 10 }, context),
  openSession: (context) => openSession(model, {}, context),
  verifyModel: (context) => verifyModel({ reference: model, candidate: model }, context),
  compareOutputs: (context) => compareOutputs({ candidate: at('y.npy'), reference: at('y.npy') }, context),
  installToolchain: (context) =>
    installToolchain({ acceptLicense: true, folder: at('toolchains'), wheel: at('y.npy') }, context),
  recordReference: (context) => recordReference({ ...stream, output: at('r.jsonl') }, context),
  verifyAgainstReference: (context) =>
    verifyAgainstReference({ candidate: encoder, reference, mode: 'closed-loop', contract: null }, context),
  checkContract: (context) => checkContract({ file: encoder, contract }, context),
};

describe('the reason of an abort is the cause', () => {
  const reason = new Error('the user closed the page');

  test.each(Object.entries(calls))('of %s, before it begins', async (_name, call) => {
    const aborted = { emit: () => {}, signal: AbortSignal.abort(reason) };
    await expect(call(aborted)).rejects.toMatchObject({ code: 'TF_CANCELLED', cause: reason });
  });

  const longer = Object.entries(calls).filter(([name]) => !inOneStep.includes(name));
  test.each(longer)('of %s, at its first event', async (_name, call) => {
    const control = new AbortController();
    const outcome = await call({ emit: () => control.abort(reason), signal: control.signal }).catch(
      (error: unknown) => error,
    );
    expect(control.signal.aborted).toBe(true);
    expect(outcome).toMatchObject({ code: 'TF_CANCELLED', cause: reason });
  });

  const atEvent = ['forge', 'buildOrLoad', 'verifyModel', 'convertModel'].flatMap((name) =>
    [2, 4, 7, 12].map((event) => [name, event] as const),
  );
  test.each(atEvent)('of %s, at event %i, or the call ends well', async (name, event) => {
    const control = new AbortController();
    let left = event;
    const emit = () => {
      left--;
      if (left === 0) control.abort(reason);
    };
    const ended = await calls[name]!({ emit, signal: control.signal }).then(
      () => 'well',
      (error: unknown) => error,
    );
    if (ended !== 'well') expect(ended).toMatchObject({ code: 'TF_CANCELLED', cause: reason });
    else expect(left).not.toBe(event);
  });
});
