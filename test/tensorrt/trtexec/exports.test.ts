import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import {
  readExportedOutput,
  readExportedProfile,
  readExportedTimes,
} from '../../../src/tensorrt/trtexec/exports.js';
import { readTrtexecLog } from '../../../src/tensorrt/trtexec/log/log.js';
import { recordedLogs, recordedRuns } from '../../fakes/trtexec.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-exports-'));
afterAll(() => rmSync(folder, { recursive: true }));

const written = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

const times = gunzipSync(readFileSync(join(recordedRuns, '10.6-bench_r50_b64.times.json.gz')));

describe('exportTimes', () => {
  test('10.6: every query that the log counts, and the statistics it prints', () => {
    const exported = readExportedTimes(written('times.json', times));
    const log = readTrtexecLog(join(recordedLogs, '10.6-bench_r50_b64.log'));
    expect(exported.computeMs).toHaveLength(log.run.queries ?? 0);
    const compute = exported.computeMs;
    const mean = compute.reduce((sum, value) => sum + value, 0) / compute.length;
    expect(mean).toBeCloseTo(log.performance?.gpuCompute?.mean ?? 0, 4);
    expect(Math.min(...compute)).toBeCloseTo(log.performance?.gpuCompute?.min ?? 0, 5);
    expect(Math.max(...compute)).toBeCloseTo(log.performance?.gpuCompute?.max ?? 0, 5);
    expect(exported.startEnqMs[0]).toBe(Number(/"startEnqMs" : ([\d.]+)/.exec(times.toString())?.[1]));
    expect(exported.h2dMs.every((ms) => ms === 0)).toBe(true);
  });

  test('8.6 writes the same fields', () => {
    const exported = readExportedTimes(join(recordedRuns, '8.6-bench_b1.first300.times.json'));
    expect(exported.latencyMs).toHaveLength(300);
    expect(exported.computeMs[0]).toBe(0.417755);
    expect(exported.endComputeMs[1]).toBe(201.22);
  });

  test.each([
    ['cut short', times.subarray(0, 100_000), /in the middle|cut short/],
    ['a log', readFileSync(join(recordedLogs, '10.6-build_typed.log')), /middle|query/],
    ['empty', '', /middle/],
    ['a query without a field', '[\n  { "startEnqMs" : 1 }\n]\n', /no endEnqMs/],
    ['a time that is none', times.toString().replace(/"computeMs" : [\d.]+/, '"computeMs" : nan'), /finite/],
  ])('%s is rejected', (_, content, why) => {
    const error = refusal(() => readExportedTimes(written('bad.json', content)));
    expect(error.code).toBe('TF_TRTEXEC_EXPORT_INVALID');
    expect(error.message).toMatch(why);
  });
});

describe('exportProfile', () => {
  test.each([
    ['10.6-profile_b32', 612],
    ['8.6-profile_b8', 975],
  ])('%s: %d inferences, every layer', (name, count) => {
    const profile = readExportedProfile(join(recordedRuns, `${name}.json`));
    expect(profile.count).toBe(count);
    expect(profile.count).toBe(readTrtexecLog(join(recordedLogs, `${name}.log`)).run.profiledIterations);
    const shares = profile.layers.reduce((sum, { percentage }) => sum + (percentage ?? 0), 0);
    expect(shares).toBeCloseTo(100, 2);
    for (const { timeMs, averageMs } of profile.layers) expect(timeMs / count).toBeCloseTo(averageMs, 5);
  });

  test('quotes and backslashes in names, which trtexec does not escape', () => {
    const path = written(
      'quotes.json',
      '[\n  { "count" : 2 }\n, { "name" : "a "quoted" \\ name", "timeMs" : 2, "averageMs" : 1, "medianMs" : 1, "percentage" : 100 }\n]\n',
    );
    expect(readExportedProfile(path).layers[0]?.name).toBe('a "quoted" \\ name');
  });

  test('without medians, as older versions write it', () => {
    const path = written(
      'old.json',
      '[\n  { "count" : 2 }\n, { "name" : "a", "timeMs" : 2, "averageMs" : 1, "percentage" : 100 }\n]\n',
    );
    expect(readExportedProfile(path).layers[0]).toMatchObject({
      averageMs: 1,
      medianMs: null,
      percentage: 100,
    });
  });
});

describe('exportOutput', () => {
  test('10.6: name, shape and values', () => {
    const [logits, ...others] = readExportedOutput(join(recordedRuns, '10.6-output_b1.json'));
    expect(others).toEqual([]);
    expect(logits).toMatchObject({ name: 'logits', shape: [1, 1000] });
    expect(logits?.values).toHaveLength(1000);
    expect(logits?.values[1]).toBe(-14.3047);
  });

  test('scalars, several tensors, inf and nan', () => {
    const path = written(
      'several.json',
      '[\n  { "name" : "a"\n  , "dimensions" : ""\n  , "values" : [ 3 ]\n  }\n, { "name" : "b"\n  , "dimensions" : "2x2"\n  , "values" : [ inf, -inf, nan, 1e-07 ]\n  }\n]\n',
    );
    expect(readExportedOutput(path)).toEqual([
      { name: 'a', shape: [], values: Float64Array.of(3) },
      { name: 'b', shape: [2, 2], values: Float64Array.of(Infinity, -Infinity, Number.NaN, 1e-7) },
    ]);
  });

  test('bytes that trtexec before 10.16 writes as they are, are rejected for what they are', () => {
    const path = written(
      'bytes.json',
      '[\n  { "name" : "a"\n  , "dimensions" : "2"\n  , "values" : [ A, B ]\n  }\n]\n',
    );
    expect(refusal(() => readExportedOutput(path)).message).toMatch(/before 10\.16 trtexec writes uint8/);
  });

  test('values that do not fill the shape are rejected', () => {
    const path = written(
      'short.json',
      '[\n { "name" : "a"\n , "dimensions" : "3"\n , "values" : [ 1, 2 ]\n }\n]\n',
    );
    expect(refusal(() => readExportedOutput(path)).message).toMatch(/2 values for the shape 3/);
  });
});

describe('damaged exports', () => {
  test.each([
    ['times', readExportedTimes, times.subarray(0, 30_000)],
    ['profile', readExportedProfile, readFileSync(join(recordedRuns, '10.6-profile_b32.json'))],
    ['output', readExportedOutput, readFileSync(join(recordedRuns, '10.6-output_b1.json'))],
  ] as const)('%s: every mutation is read or rejected', (name, read, original) => {
    for (const bytes of mutations(original, 300, 7)) {
      const path = written(`mutated-${name}`, bytes);
      try {
        read(path);
      } catch (error) {
        if (!(error instanceof TrtforgeError)) throw error;
        expect(error.code).toBe('TF_TRTEXEC_EXPORT_INVALID');
      }
    }
  });

  test('a line of megabytes is read once: going back at each of its words would take an hour', () => {
    const line = `{ "name" : "${'a" '.repeat(1 << 20)}`;
    expect(() => readExportedProfile(written('long.json', `[\n${line}\n]\n`))).toThrow(TrtforgeError);
    expect(() => readExportedTimes(written('long.json', `[\n${line}\n]\n`))).toThrow(TrtforgeError);
    expect(readExportedOutput(written('long.json', `[\n${'"name" : "'.repeat(1 << 18)}\n]`))).toEqual([]);
  });
});
