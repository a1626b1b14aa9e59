import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { compareVariants } from '../../../../src/products/evaluation/compare/compare-variants.js';
import { comparisonSchema } from '../../../../src/products/evaluation/compare/result.js';
import { readRunRoot } from '../../../../src/products/evaluation/compare/run-root.js';
import { runs } from '../../../support/runs.js';
import { notRun, recorded, sampleVariants } from './sample.js';

const facts = { root: 'tmp/root', ran: new Set<string>(), damaged: [], warnings: [], repeat: null };
const [first] = sampleVariants;
const quantised = { label: 'int8', backEnd: 'ort-cuda', role: 'candidate', mAP: 0.48, medianMs: 3 } as const;

describe('a comparison', () => {
  const result = compareVariants(sampleVariants, facts);

  it('has the drop of every variant from the first, absolute and relative', () => {
    expect(comparisonSchema.parse(result)).toEqual(result);
    const drops = result.accuracy.map(({ variant, drop }) => [variant, Number(drop.toFixed(6))]);
    expect(drops).toEqual([
      ['fp32-ort-cpu', 0],
      ['fp16-ort-cuda', 0.001],
      ['fp16-ort-cpu', 0.001],
      ['int8-ort-cuda', 0.02],
      ['int8-ort-cpu', 0.02],
    ]);
    expect(result.accuracy.at(-1)?.relativeDrop).toBeCloseTo(0.04);
  });

  it('has the latency of candidates over that of FP16 on the same back end and machine', () => {
    expect(result.latency).toEqual([
      { variant: 'int8-ort-cuda', reference: 'fp16-ort-cuda', medianMs: 3, of: 4, share: 0.75 },
    ]);
  });

  it('ends with the exit code of the worst reason why a variant did not run', () => {
    expect(result.exitCode).toBe(3);
    expect(compareVariants([first], facts).exitCode).toBe(0);
  });

  it('has damaged files, which are bad input whatever the others are', () => {
    const damaged = ['int8-trt-coco/metrics.json'];
    const { exitCode, damaged: stated, accuracy } = compareVariants(sampleVariants, { ...facts, damaged });
    expect([exitCode, accuracy.length]).toEqual([2, 5]);
    expect(stated).toMatchObject([{ file: damaged[0], error: { code: 'TF_EVAL_DATA', exitCode: 2 } }]);
  });

  it('without figures has no reference', () => {
    const none = compareVariants([notRun({ label: 'fp32', backEnd: 'trt', role: 'model' })], facts);
    expect(none).toMatchObject({ reference: null, accuracy: [], latency: [], exitCode: 3 });
  });

  it.each([
    ['of another key', { key: 'other' }],
    ['that were not scored', { mAP: null }],
  ])('does not compare figures %s, and is inconclusive', (_, change) => {
    const { accuracy, notCompared, exitCode } = compareVariants(
      [first, recorded({ ...quantised, ...change })],
      facts,
    );
    expect([accuracy, exitCode]).toEqual([[], 4]);
    expect(notCompared.map(({ variant }) => variant)).toEqual(['int8-ort-cuda']);
  });

  it('counts a higher error rate as a drop', () => {
    const wer = (label: string, value: number) => {
      const variant = recorded({ ...quantised, label });
      const metrics = [{ name: 'wer', value, unit: 'share', higherIsBetter: false }];
      return { ...variant, figures: variant.figures && { ...variant.figures, metrics } };
    };
    const [accuracy] = compareVariants([wer('fp32', 0.05), wer('int8', 0.06)], facts).accuracy;
    expect(accuracy?.drop).toBeCloseTo(0.01);
  });
});

describe('a run root', () => {
  const root = mkdtempSync(join(tmpdir(), 'trtforge-run-root-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it('whatever is in its files, they are read or named', () => {
    mkdirSync(join(root, 'fp32-ort-cpu-coco'));
    const text = fc.oneof(
      fc.json(),
      fc.string(),
      fc.json().map((json) => json.slice(0, json.length / 2)),
    );
    fc.assert(
      fc.property(text, (content) => {
        writeFileSync(join(root, 'fp32-ort-cpu-coco', 'metrics.json'), content);
        expect(readRunRoot(root)).toEqual({ recorded: [], damaged: ['fp32-ort-cpu-coco/metrics.json'] });
      }),
      { numRuns: runs(100) },
    );
  });
});
