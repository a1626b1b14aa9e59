import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it, test } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { defaultPolicy, driftOf, judgeDrift } from '../../../../src/products/streaming/compare/drift.js';
import { driftSection } from '../../../../src/products/streaming/report/drift.js';
import { parityReport } from '../../../../src/products/streaming/report/page.js';
import type { ParityResult } from '../../../../src/products/streaming/verify/result.js';
import { drawChart } from '../../../../src/report/chart/frame.js';
import { readReport, renderReport } from '../../../../src/report/pages/report.js';
import { formatMeasure } from '../../../../src/report/sentences.js';
import { sampleParity, streamOf } from './sample.js';

const html = (result: ParityResult) => renderReport({ kind: parityReport, result }, 'html').content;
const markdown = (result: ParityResult) => renderReport({ kind: parityReport, result }, 'markdown').content;

describe('the drift of a stream', () => {
  it('leads with the bound and the mean', () => {
    expect(driftSection(streamOf([1e-4, 3e-4, 2e-4]))?.lead).toMatch(
      /^The largest error of output over 3 chunks is 3\.00e-4 \(chunk 1\), the mean 2\.00e-4\./,
    );
  });

  it('leads with the chunks that are not finite instead of a bound', () => {
    const section = driftSection(streamOf([1e-4, Number.NaN, 2e-4, Number.NaN]));
    expect(section?.lead).toMatch(/^The error of output is not finite in 2 of 4 chunks, first in chunk 1\./);
    expect(section?.lead).not.toMatch(/NaN/);
  });

  it('names a slope above its limit that is not certain, in its lead and its table', () => {
    const errors = Array.from({ length: 20 }, (_, at) => 1e-3 * ((at * 7) % 5) + 1e-5 * at);
    const checks = [
      ...judgeDrift(driftOf('output', errors), defaultPolicy, { passRate: 1, latencyP95Ms: null }),
    ];
    const { drift, series } = streamOf(errors);
    const section = driftSection({ drift: { ...drift!, checks }, series });
    const { low, high } = drift!.slope.robust;
    expect(section?.lead).toContain(checks.find(({ name }) => name === 'slope')?.sentence);
    const tables = section?.blocks.flatMap((block) => (block?.kind === 'table' ? [block.rows] : []));
    expect(JSON.stringify(tables?.[0]?.find(([name]) => name === 'slope'))).toContain('not certain');
    // The bounds that are printed are those that decided.
    expect(tables?.[1]?.[0]?.slice(-2)).toEqual([low, high].map(formatMeasure));
    expect(Number(low)).toBeLessThan(1e-6);
  });

  it('colours every chunk by the limits it is above', () => {
    const block = driftSection(streamOf([1e-5, 6e-4, 2e-3, 0]))?.blocks[0];
    const chart = block?.kind === 'charts' ? block.charts[0]!.chart : undefined;
    const marks = [
      ...drawChart(chart!, 'id')
        .toString()
        .matchAll(/<circle class="mark (\w+)"/g),
    ];
    expect(marks.map(([, tone]) => tone)).toEqual(['accent', 'warn', 'bad', 'good']);
  });

  it('is an SVG file of its own, with its colours inside', () => {
    const { name, content } = renderReport({ kind: parityReport, result: sampleParity('<a & b>') }, 'svg');
    expect(name).toBe('report.svg');
    expect(content).not.toMatch(/var\(|<a & b>|:\s*[;}]/);
    expect(content).toMatch(/\.mark\.bad { fill: #b3261e; }/);
    expect(content.match(/<circle class="mark/g)).toHaveLength(4);
    expect(content.match(/<svg /g)).toHaveLength(content.match(/<\/svg>/g)!.length);
  });

  it('has no file where nothing was compared', () => {
    const result = { ...sampleParity(), drift: null };
    expect(() => renderReport({ kind: parityReport, result }, 'svg')).toThrow(
      expect.objectContaining({ code: 'TF_USAGE' }),
    );
  });
});

describe('the report of a stream', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-stream-report-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('has every part as a page and as Markdown', () => {
    const page = html(sampleParity());
    expect([...page.matchAll(/<h2 id="[^"]+">([^<]+)</g)].map(([, title]) => title)).toEqual([
      'Drift',
      'Outputs',
      'Why',
      'Times',
      'Repeat it',
    ]);
    expect(page).toContain('<p class="verdict-word">Fail</p>');
    expect(page.match(/<circle class="mark/g)).toHaveLength(4);
    const rendered = markdown(sampleParity());
    expect(rendered).toMatch(/^# output: ❌ Fail\n/);
    expect(rendered).toMatch(/1 chunk of 4 passed \(25\s%\)\. Contract: pass\. Numbers: fail\./);
    expect(rendered).toContain('| max | **fail** | 0.002 | 0.001 |');
    expect(rendered).toContain('| output | 1/4 | 2/4 | 6.00e-4 |');
    expect(rendered).toContain('| other-model | warning | output | output |');
    expect(rendered).toContain('| run | 1.3 ms | 1.0 ms | 2.0 ms | 2.0 ms | 2.0 ms |');
    expect(rendered).toContain('```sh\ntrtforge stream verify output\n```');
  });

  test('has names from outside as text', () => {
    const evil = '"></title></script><script>alert(1)</script>|`@x`\u202e';
    const page = html(sampleParity(evil));
    expect(page.match(/<script/g)).toHaveLength(2);
    expect(page).not.toContain('\u202e');
    const rendered = markdown(sampleParity(evil)).replace(/(`+)(?!`)[\s\S]*?(?<!`)\1(?!`)/g, '');
    expect(rendered).not.toMatch(/<(?!!)/);
  });

  test('is read or rejected when damaged, and what is read can be rendered', () => {
    const path = join(folder, 'damaged.json');
    const whole = JSON.stringify(sampleParity());
    fc.assert(
      fc.property(fc.nat(), fc.string({ maxLength: 6 }), fc.nat(40), (place, inserted, cut) => {
        const at = place % whole.length;
        writeFileSync(path, whole.slice(0, at) + inserted + whole.slice(at + cut));
        try {
          const read = readReport(path, [parityReport]);
          expect(renderReport(read, 'html').content).not.toMatch(/(?:cx|cy|y1|x1)="(?:NaN|Infinity)/);
          expect(renderReport(read, 'markdown').content).toContain('## Repeat it');
        } catch (error) {
          expect(error).toBeInstanceOf(TrtforgeError);
        }
      }),
      { numRuns: 200 },
    );
  });
});
