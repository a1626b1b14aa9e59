import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256OfFileInPieces } from '../../../../src/base/files/digest.js';
import { evaluationSections } from '../../../../src/products/evaluation/report/run-root.js';
import { sampleResult } from '../../../report/sample.js';
import { runs } from '../../../support/runs.js';
import { trtforge } from '../../../support/trtforge.js';
import { detector, paintCells } from '../detection/coloured-cells.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-evaluated-root-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let sha256: string;
beforeAll(async () => {
  await paintCells(folder);
  const model = await detector();
  sha256 = await sha256OfFileInPieces(model);
  const line = ['eval', 'detector', model, '--instances', at('instances.json'), '--images', at('images')];
  const { exitCode, out } = await trtforge([...line, '-o', at('root', 'eval', 'fp32-coco'), '--json']);
  expect(exitCode).toBe(0);
  writeFileSync(at('root', 'eval.json'), out);
  writeFileSync(at('root', 'report.json'), JSON.stringify(sampleResult()));
});

describe('the run root of forge with evaluations in it', () => {
  it('is reported with them, before the phases', async () => {
    const { exitCode } = await trtforge(['report', at('root'), '--format', 'markdown']);
    const report = readFileSync(at('root', 'report.md'), 'utf8').replaceAll('\\', '');
    expect(exitCode).toBe(0);
    expect(report).toContain('2 evaluations in the run root. Their comparability keys are equal.');
    expect(report.indexOf('## Evaluation')).toBeLessThan(report.indexOf('## The run'));
    expect(report).toMatch(/\| `eval\/fp32-coco\/metrics.json` \| mAP_50_95 \d\.\d{4}/);
    expect(report).not.toContain('this engine');
  });

  it('names those of its own engine', () => {
    const result = { build: { passport: { plan: { sha256 } } } };
    expect(JSON.stringify(evaluationSections([{ root: at('root'), result: result }]))).toContain(
      'this engine',
    );
  });

  it('without any has no section', () => {
    expect(evaluationSections([{ root: at('images'), result: sampleResult() }])).toEqual([]);
    expect(evaluationSections([{ root: at('nowhere'), result: sampleResult() }])).toEqual([]);
  });

  it('whatever else a file has, it is left out', () => {
    const value = fc.oneof(fc.json(), fc.string());
    fc.assert(
      fc.property(
        value,
        fc.constantFrom('eval-detector/1', 'eval-classify/1', 'eval-wer/1'),
        (rest, name) => {
          writeFileSync(at('images', 'odd.json'), `{"schema":"trtforge.${name}","metrics":${rest}}`);
          expect(evaluationSections([{ root: at('images'), result: sampleResult() }])).toEqual([]);
        },
      ),
      { numRuns: runs(100) },
    );
  });
});
