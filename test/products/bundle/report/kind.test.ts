import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { bundleReport } from '../../../../src/products/bundle/report/page.js';
import { forgeReport } from '../../../../src/report/pages/forge.js';
import { readReport, renderReport } from '../../../../src/report/pages/report.js';
import { failedSample } from '../../../report/sample.js';
import { sampleBundle } from './sample.js';

const kinds = [forgeReport, bundleReport];
const read = (path: string) => readReport(path, kinds).result;

describe('reading the report of a bundle', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-bundle-report-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('from its folder or from the file, and a run root before it', () => {
    const path = join(folder, 'build_report.json');
    writeFileSync(path, JSON.stringify(sampleBundle()));
    expect(read(folder)).toEqual(sampleBundle());
    writeFileSync(join(folder, 'report.json'), JSON.stringify(failedSample()));
    expect([read(folder), read(path)]).toEqual([failedSample(), sampleBundle()]);
    writeFileSync(path, JSON.stringify({ ...sampleBundle(), outcome: 'good' }));
    expect(() => read(path)).toThrow(
      expect.objectContaining({
        code: 'TF_REPORT_INVALID',
        message: expect.stringMatching(/is not a result of a bundle: .outcome./),
      }),
    );
  });

  test('a damaged one is read or rejected, and what is read can be rendered', () => {
    const path = join(folder, 'damaged.json');
    const whole = JSON.stringify(sampleBundle());
    fc.assert(
      fc.property(fc.nat(), fc.string({ maxLength: 6 }), fc.nat(40), (place, inserted, cut) => {
        const at = place % whole.length;
        writeFileSync(path, whole.slice(0, at) + inserted + whole.slice(at + cut));
        try {
          const report = readReport(path, kinds);
          expect(renderReport(report, 'html').content).toContain('</html>');
          expect(renderReport(report, 'markdown').content).toContain('## Repeat it');
        } catch (error) {
          expect(error).toBeInstanceOf(TrtforgeError);
        }
      }),
      { numRuns: 200 },
    );
  });
});
