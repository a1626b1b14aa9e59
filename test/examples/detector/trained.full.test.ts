import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cutOutput, HEADS } from '../../../examples/detector/heads.js';
import { Instances, imageName } from '../../../examples/detector/instances.js';
import { drawScene, SIDE } from '../../../examples/detector/scene.js';
import { NodeProtoSchema, openModel, writeModel } from '../../../src/formats/onnx/index.js';
import { trtforge } from '../../support/trtforge.js';

/** The model of docs/evidence/trained-detector.md (mAP 0.703 of 2,000 scenes), on the first 100 of them. */
const MODEL = 'examples/detector/detector.onnx';
const COUNT = 100;
/** Enough to compare two decodings of the same outputs. */
const FEW = 15;
const FLOOR = 0.62;
const POINT = 0.01;

interface Evaluated {
  readonly metrics: { readonly mAP_50_95: number };
  readonly stats: readonly number[];
  readonly comparabilityKey: string;
  readonly run: { readonly head: { readonly kind: string; readonly scores: string } };
}

const folder = mkdtempSync(join(tmpdir(), 'trtforge-trained-'));
const at = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const evaluate = (model: string, images = COUNT) =>
  trtforge([
    'eval',
    'detector',
    at(model),
    '--instances',
    at('instances.json'),
    '--images',
    at('images'),
    '--max-images',
    String(images),
    '--warmup-runs',
    '0',
    '--json',
  ]);

async function evaluated(model: string, images = COUNT): Promise<Evaluated> {
  const { exitCode, json } = await evaluate(model, images);
  expect(exitCode).toBe(0);
  return json<Evaluated & { schema: string; ok: boolean; exitCode: 0 }>();
}

beforeAll(async () => {
  mkdirSync(at('images'));
  const instances = new Instances();
  for (let index = 0; index < COUNT; index++) {
    const scene = drawScene('test', index);
    instances.add(index, scene);
    await sharp(scene.pixels, { raw: { width: SIDE, height: SIDE, channels: 3 } })
      .png({ compressionLevel: 1 })
      .toFile(at(`images/${imageName(index)}`));
  }
  writeFileSync(at('instances.json'), JSON.stringify(instances.document('test')));
  for (const head of HEADS) await cutOutput(MODEL, head, at(`${head}.onnx`));
});

/** Adds a sigmoid behind the class scores of the one-to-many head. */
async function withSecondSigmoid(path: string, to: string): Promise<void> {
  const model = openModel(path);
  try {
    const graph = model.proto.graph!;
    const joined = graph.node.find(({ output }) => output.includes('one_to_many'))!;
    const scores = joined.input.at(-1)!;
    joined.input[joined.input.length - 1] = 'twice';
    graph.node.splice(
      graph.node.indexOf(joined),
      0,
      create(NodeProtoSchema, { name: 'second', opType: 'Sigmoid', input: [scores], output: ['twice'] }),
    );
    await writeModel(model, to);
  } finally {
    model.close();
  }
}

describe('the trained detector on scenes it has not seen', () => {
  it('finds what is there, and loses at most a point of mAP in FP16', async () => {
    const reference = await evaluated('end_to_end.onnx');
    expect(reference.run.head).toMatchObject({ kind: 'end-to-end', scores: 'probabilities' });
    expect(reference.metrics.mAP_50_95).toBeGreaterThan(FLOOR);
    // Small, medium and large objects each have annotations, and are found.
    for (const ofArea of reference.stats.slice(3, 6)) expect(ofArea).toBeGreaterThan(0.4);

    const converted = at('fp16.onnx');
    expect(
      (await trtforge(['convert', at('end_to_end.onnx'), '--precision', 'fp16', '-o', converted])).exitCode,
    ).toBe(0);
    const half = await evaluated('fp16.onnx');
    expect(half.comparabilityKey).toBe(reference.comparabilityKey);
    expect(half.metrics.mAP_50_95).toBeGreaterThan(reference.metrics.mAP_50_95 - POINT);
    // Rounding to 16 bits shows somewhere.
    expect(half.stats).not.toEqual(reference.stats);
  });

  it('has the same figures from decoded scores and from logits of one head', async () => {
    const decoded = await evaluated('one_to_many.onnx', FEW);
    expect(decoded.run.head).toMatchObject({ kind: 'boxes', scores: 'probabilities' });
    const raw = await evaluated('raw.onnx', FEW);
    expect(raw.run.head).toMatchObject({ kind: 'dfl', scores: 'logits' });
    expect(decoded.metrics.mAP_50_95).toBeGreaterThan(0.5);
    expect(Math.abs(raw.metrics.mAP_50_95 - decoded.metrics.mAP_50_95)).toBeLessThan(0.001);
  });

  it('is rejected with a second sigmoid', async () => {
    await withSecondSigmoid(at('one_to_many.onnx'), at('twice.onnx'));
    const { exitCode, json } = await evaluate('twice.onnx', FEW);
    expect(exitCode).not.toBe(0);
    expect(json().error?.code).toBe('TF_EVAL_HEAD');
  });
});
