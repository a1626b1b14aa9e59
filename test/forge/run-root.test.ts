import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ignoreEvents, type WorkEvent } from '../../src/events.js';
import { openRunLog, stampedLine } from '../../src/forge/run-log.js';
import { runRootAt, writeReport } from '../../src/forge/run-root.js';
import { forgeReport } from '../../src/report/pages/forge.js';
import { readReport } from '../../src/report/pages/report.js';
import { sampleResult } from '../report/sample.js';

describe('a run root', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-run-'));
  const root = runRootAt(join(folder, 'deep', 'run'));
  beforeAll(() =>
    openRunLog(
      root,
      stampedLine(() => 0),
      ignoreEvents,
    ).begin(),
  );
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('holds every view of the result, and nothing unfinished', async () => {
    const result = sampleResult();
    await writeReport(root, result);
    expect(readdirSync(root.path).sort()).toEqual([
      'logs',
      'report.html',
      'report.json',
      'report.md',
      'timings.json',
    ]);
    expect(readReport(root.path, [forgeReport]).result).toEqual(result);
    const timings = JSON.parse(readFileSync(root.timings, 'utf8'));
    expect(timings).toMatchObject({ schema: 'trtforge.timings/1', totalMs: 6284 });
    expect(timings.phases.map(({ name }: { name: string }) => name)).toEqual(
      result.phases.map(({ name }) => name),
    );
  });

  test('keeps one log per phase, its lines there before the phase ends', () => {
    const log = openRunLog(
      root,
      stampedLine(() => 1234),
      ignoreEvents,
    );
    log.begin();
    log.write('verify engine', { type: 'log', source: 'TensorRT', severity: 'warning', message: 'careful' });
    log.write('build', { type: 'progress', phase: 'build', done: 1 });
    log.write('build', { type: 'phase-end', phase: 'parse', ms: 12.34 });
    expect(readFileSync(root.log('verify engine'), 'utf8')).toBe('    1.234  warning [TensorRT] careful\n');
    expect(readFileSync(root.log('build'), 'utf8')).toBe('    1.234  end parse after 12.3 ms\n');
    log.close();
  });

  test.skipIf(!existsSync('/dev/full'))('a full disk ends the logging, with one warning, not the run', () => {
    symlinkSync('/dev/full', root.log('verify'));
    const events: WorkEvent[] = [];
    const log = openRunLog(
      root,
      stampedLine(() => 0),
      (event) => events.push(event),
    );
    log.begin();
    const line: WorkEvent = { type: 'log', source: 'x', severity: 'info', message: 'y' };
    log.write('verify', line);
    log.write('verify', line);
    log.close();
    expect(events).toEqual([
      expect.objectContaining({ severity: 'warning', message: expect.stringContaining('the disk is full') }),
    ]);
  });

  test('names the typed model and the steps', () => {
    expect(root.typedModel('models/Res Net.v1.ONNX', 'fp16')).toBe(
      join(root.path, 'model', 'Res Net.v1.fp16.onnx'),
    );
    expect(root.stepResult('verify engine')).toBe(join(root.path, 'steps', 'verify-engine.json'));
  });

  test('that cannot be created is a TF_WRITE_FAILED before any work', () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const log = openRunLog(
      runRootAt(join(file, 'run')),
      stampedLine(() => 0),
      ignoreEvents,
    );
    expect(() => log.begin()).toThrow(expect.objectContaining({ code: 'TF_WRITE_FAILED' }));
  });
});
