import { expect, it } from 'vitest';
import type { WorkEvent } from '../../../src/events.js';
import { attribute, GraphBuilder as Graph } from '../../../src/formats/onnx/index.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import type { VerifyRequest } from '../../../src/quality/verify/options.js';
import type { VerifyResult } from '../../../src/quality/verify/result.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { castTo, floats, ids, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { freshPath } from '../../formats/precision/judge.js';
import { inProcessBackEnd } from '../../support/in-process-back-end.js';
import { trtforge } from '../../support/trtforge.js';

const int32 = (value: number): Tensor => tensorFrom('int32', [], Int32Array.of(value));

/** A voice detector for two rates: 512 samples at 16 kHz, 256 at any other. */
const detector = () =>
  modelFile((graph) => {
    graph.input('sound', 'float32', [null, null]);
    graph.input('sr', 'int64', []);
    graph.initializer('rate', ids([], [16_000]));
    graph.node('Equal', { inputs: ['sr', 'rate'], outputs: ['isWide'] });
    const branch = (length: number) => {
      const body = new Graph(`of${length}`);
      const weight = Array.from({ length: 4 * length }, (_, at) => Math.sin(at) / 16);
      body.initializer(`w${length}`, floats('float32', [length, 4], weight));
      body.node('MatMul', { inputs: ['sound', `w${length}`], outputs: [`y${length}`] });
      body.output(`y${length}`, 'float32', [null, 4]);
      return attribute.body(body);
    };
    graph.node('If', {
      inputs: ['isWide'],
      outputs: ['y'],
      name: 'gate',
      attributes: { then_branch: branch(512), else_branch: branch(256) },
    });
    graph.output('y', 'float32', [null, 4]);
  });

async function verified(more: Partial<VerifyRequest>) {
  const path = await detector();
  const warnings: WorkEvent[] = [];
  const result = await verifyModel(
    { reference: path, candidate: path, threads: 1, ...more },
    {
      backEnds: [inProcessBackEnd()],
      emit: (event) => event.type === 'log' && event.severity === 'warning' && warnings.push(event),
    },
  );
  return { result, warnings };
}

const wide = { shapes: new Map([['sound', [1, 512]]]) };

it.each<[string, Partial<VerifyRequest>]>([
  ['guessed sizes', {}],
  ['requested ones', wide],
])(
  'a sample that does not run beside others is left out, with what it alone reaches: %s',
  async (_, more) => {
    for (const seed of [0, 1, 2]) {
      const { result } = await verified({ ...more, seed });
      expect(result).toMatchObject({
        outcome: 'pass',
        inputs: [{ shape: [expect.any(Number), 512] }, { shape: [] }],
      });
      expect(result.samplesFrom?.samples).toHaveLength(result.samples);
      expect(result.samplesFrom?.samples.some(({ kind }) => kind === 'drawn')).toBe(true);
      expect(result.unreached?.branches).toMatchObject([{ branch: 'else' }]);
      expect(result.leftOut!.length).toBeGreaterThan(1);
      for (const { branches, message } of result.leftOut!) {
        expect(branches).toEqual([{ node: 'If "gate"', branch: 'else' }]);
        expect(message).toMatch(/sr 1(5999|6001)\b.*--inputs sr=@sr\.npy/);
      }
    }
  },
);

it('one input from a file leaves the others drawn, edges included', async () => {
  const sr = freshPath('.npy');
  writeNpy(sr, ids([], [16_000]));
  const { result, warnings } = await verified({ ...wide, data: { files: [`sr=@${sr}`] } });
  expect(result).toMatchObject({ outcome: 'pass', leftOut: [], samplesFrom: { available: 1 } });
  const kinds = result.samplesFrom?.samples.map(({ kind }) => kind);
  expect(new Set(kinds)).toEqual(new Set(['edge', 'drawn']));
  expect(result.unreached?.branches).toHaveLength(1);
  expect(warnings).toMatchObject([{ message: expect.stringMatching(/sound: drawn/) }]);
});

it('the command prints what it left out, and the line that chooses the value works', async () => {
  const path = await detector();
  const line = ['verify', path, '--against', path, '--shapes', 'sound:1x512', '--threads', '1'];
  const { exitCode, out } = await trtforge(line);
  expect(exitCode).toBe(0);
  const [, option = ''] = /To choose sr: (--inputs sr=@sr\.npy)/.exec(out) ?? [];
  expect(out).toContain('else branch');
  const sr = freshPath('.npy');
  writeNpy(sr, ids([], [8000]));
  const chosen = option.replace('sr.npy', sr).split(' ');
  const narrow = line.map((word) => (word === 'sound:1x512' ? 'sound:1x256' : word));
  const { json } = await trtforge([...narrow, ...chosen, '--json']);
  expect(json<VerifyResult>()).toMatchObject({
    outcome: 'pass',
    leftOut: [],
    unreached: { branches: [{ branch: 'then' }] },
  });
});

it('where nothing runs, the value that was drawn is named beside the sizes', async () => {
  const choose = expect.stringContaining('--inputs sr=@sr.npy');
  const shapes = new Map([['sound', [1, 100]]]);
  const failed = { code: 'TF_ONNXRUNTIME_FAILED', remedy: choose };
  await expect(verified({ shapes })).rejects.toMatchObject(failed);
  await expect(verified({ shapes, samples: 1 })).rejects.toMatchObject(failed);
});

it('a sample of the user that does not run is left out by name', async () => {
  const [sound, sr] = [freshPath('.npy'), freshPath('.npy')];
  writeNpy(
    sound,
    floats(
      'float32',
      [3, 512],
      Array.from({ length: 3 * 512 }, (_, at) => Math.cos(at)),
    ),
  );
  writeNpy(sr, ids([3], [16_000, 8000, 16_000]));
  const { result } = await verified({ data: { files: [`sound=@${sound}`, `sr=@${sr}`] } });
  expect(result).toMatchObject({ samples: 2, leftOut: [{ kind: 'data' }] });
});

it('wrong rows of a table behind an index that is computed do not pass', async () => {
  const embedding = (wrong: boolean) =>
    modelFile((graph) => {
      graph.input('ids', 'int32', [null, 7]);
      const row = (at: number) => Math.sin(wrong && at > 1 ? at + 1 : at);
      graph.initializer(
        'table',
        floats(
          'float32',
          [49, 2],
          Array.from({ length: 98 }, (_, at) => row(at >> 1)),
        ),
      );
      graph.initializer('zero', int32(0));
      graph.initializer('count', int32(49));
      graph.node('GreaterOrEqual', { inputs: ['ids', 'zero'], outputs: ['isIn'] });
      graph.node('Less', { inputs: ['ids', 'zero'], outputs: ['isBelow'] });
      graph.node('Cast', { inputs: ['isIn'], outputs: ['i1'], attributes: castTo('int32') });
      graph.node('Cast', { inputs: ['isBelow'], outputs: ['i2'], attributes: castTo('int32') });
      graph.node('Mul', { inputs: ['ids', 'i1'], outputs: ['kept'] });
      graph.node('Add', { inputs: ['ids', 'count'], outputs: ['shifted'] });
      graph.node('Mul', { inputs: ['i2', 'shifted'], outputs: ['wrapped'] });
      graph.node('Add', { inputs: ['kept', 'wrapped'], outputs: ['index'] });
      graph.node('Gather', { inputs: ['table', 'index'], outputs: ['y'] });
      graph.output('y', 'float32', null);
    });
  const reference = await embedding(false);
  for (const seed of [0, 1, 2]) {
    const result = await verifyModel({
      reference,
      candidate: await embedding(true),
      precision: 'fp16',
      threads: 1,
      seed,
    });
    expect(result).toMatchObject({ outcome: 'fail', unreached: { tables: [] } });
  }
});
