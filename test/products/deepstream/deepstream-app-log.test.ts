import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it, test } from 'vitest';
import { pipelineSections, readPipelineLog } from '../../../src/products/deepstream/deepstream-app-log.js';
import { runs } from '../../support/runs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-ds-logs-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** As deepstream-app prints: a header again and again, figures with tabs, what plug-ins print between. */
const log = (lines: readonly (readonly number[])[]) =>
  [
    '** INFO: <bus_callback:291>: Pipeline running',
    '',
    `**PERF:  ${lines[0]!.map((_, stream) => `FPS ${stream} (Avg)\t`).join('')}`,
    ...lines.map(
      (line) => `**PERF:  ${line.map((fps) => `${fps.toFixed(2)} (${(fps - 1).toFixed(2)})\t`).join('')}`,
    ),
    'nvstreammux: Successfully handled EOS for source_id=0',
    '',
  ].join('\n');
const repeated = (line: readonly number[], count = 10) => Array.from({ length: count }, () => line);

describe('a log of deepstream-app', () => {
  it('has the mean of the last ten intervals, of each stream', () => {
    const text = log([...repeated([3, 2], 5), ...repeated([40, 30])]);
    expect(readPipelineLog('ds_s2_run1.log', text)).toEqual({
      streams: 2,
      run: 1,
      meanFps: 35,
      minFps: 30,
      totalFps: 70,
      isRealTime: true,
    });
  });

  it.each([
    ['one stream is too slow', 'ds_s2_run2.log', [40, 29.8], false],
    ['rounding is no loss', 'ds_s1_run2.log', [29.97], true],
    ['a stream is missing', 'ds_s2_run1.log', [40], false],
  ])('%s', (_, name, line, isRealTime) => {
    expect(readPipelineLog(name, log(repeated(line)))?.isRealTime).toBe(isRealTime);
  });

  it.each([
    ['trtexec_b1.log', log(repeated([30]))],
    ['ds_s0_run1.log', log(repeated([30]))],
    ['ds_s1_run1.log', '**PERF:  FPS 0 (Avg)\t\n'],
    ['ds_s1_run1.log', ''],
  ])('%s without figures is not a measurement', (name, text) => {
    expect(readPipelineLog(name, text)).toBeNull();
  });

  test('any text is read within its length', () => {
    const part = fc.oneof(
      fc.constantFrom('**PERF:  ', '30.00 (29.98)\t', '(', '\n', '9'.repeat(400)),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 60 }), (parts) => {
        const read = readPipelineLog('ds_s1_run1.log', parts.join(''));
        expect(read === null || read.totalFps >= read.minFps).toBe(true);
      }),
      { numRuns: runs(2000) },
    );
  });
});

test('the run root shows its runs by number of streams', () => {
  const place = join(folder, 'benchmarks', 'ds');
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'ds_s16_run1.log'), log(repeated(Array(16).fill(25))));
  writeFileSync(join(place, 'ds_s2_run2.log'), log(repeated([60, 60])));
  writeFileSync(join(place, 'ds_s4_run1.log'), 'killed');
  const [section, ...more] = pipelineSections([{ root: folder, result: null }]);
  expect(more).toEqual([]);
  const text = JSON.stringify(section);
  expect(text.indexOf('ds_s2_run2.log')).toBeLessThan(text.indexOf('ds_s16_run1.log'));
  expect(text).not.toContain('ds_s4');
  expect(['"120.00"', '"400.00"'].filter((total) => !text.includes(total))).toEqual([]);
  expect(pipelineSections([{ root: join(folder, 'none'), result: null }])).toEqual([]);
});
