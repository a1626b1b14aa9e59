import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { readCalibration, writeCalibration } from '../../../../src/formats/precision/calibrate/cache.js';
import { mutations } from '../../../support/mutations.js';
import { runs } from '../../../support/runs.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-calibration-cache-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = (name: string, content?: string | Uint8Array) => {
  const place = join(folder, name);
  if (content !== undefined) writeFileSync(place, content);
  return place;
};

const identity = { data: 'd', method: 'max', dtype: 'int8', model: 'm' };
const ranges = new Map([
  ['(Unnamed Layer* 4) [Fully Connected]_output', { min: -1, max: 0.5, amax: 1 }],
  [
    'a: b',
    {
      min: 0,
      max: 254,
      amax: 254,
      channels: { mean: Float32Array.of(0.1, -3), variance: Float32Array.of(1e-30, 7) },
    },
  ],
  ['zero', { min: 0, max: 0, amax: 0 }],
]);
const codeOf = (read: () => unknown) => {
  try {
    read();
  } catch (error) {
    return error instanceof TrtforgeError ? { code: error.code, details: error.details } : error;
  }
  return null;
};

describe('a cache of ours', () => {
  const file = path('c.json');
  writeCalibration(file, identity, ranges);

  test('is read again with all that was written', () => {
    expect(readCalibration(file, identity)).toEqual({ identity: { ...identity, revision: 2 }, ranges });
    expect(readCalibration(file).ranges).toEqual(ranges);
  });

  test.each(['data', 'method', 'dtype', 'model'] as const)('of another %s is rejected by name', (field) => {
    expect(codeOf(() => readCalibration(file, { ...identity, [field]: 'other' }))).toEqual({
      code: 'TF_CALIBRATION_INVALID',
      details: { differing: [field] },
    });
  });

  test('of another revision is rejected', () => {
    const old = path('old.json', readFileSync(file, 'utf8').replace('"revision": 2', '"revision": 1'));
    expect(codeOf(() => readCalibration(old, identity))).toMatchObject({
      details: { differing: ['revision'] },
    });
    expect(readCalibration(old, { model: identity.model }).ranges).toEqual(ranges);
  });

  test('is not what another program wrote as JSON: that is not to be removed', () => {
    const foreign = path('calibration.json', '{"CLS": "TensorsData", "data": {}}');
    expect(() => readCalibration(foreign)).toThrow(
      expect.objectContaining({
        code: 'TF_CALIBRATION_INVALID',
        remedy: expect.not.stringMatching(/remove/i),
      }),
    );
  });

  test.each([
    ['cut short', '{"schema": "trtforge.cal'],
    ['of another schema', '{"schema":"trtforge.convert/1"}'],
    ['with a range below zero', readFileSync(file, 'utf8').replace('"amax": 254', '"amax": -254')],
  ])('%s is rejected', (_what, content) => {
    expect(codeOf(() => readCalibration(path('bad.json', content), identity))).toMatchObject({
      code: 'TF_CALIBRATION_INVALID',
    });
  });
});

describe("TensorRT's table", () => {
  const file = path('table.cache');
  writeCalibration(file, { ...identity, method: 'entropy' }, ranges);

  test('has the scale of each tensor as a big-endian float', () => {
    const scale = (amax: number) => {
      const bytes = Buffer.alloc(4);
      bytes.writeFloatBE(amax / 127);
      return bytes.toString('hex');
    };
    expect(readFileSync(file, 'utf8')).toBe(
      `TRT-8602-EntropyCalibration2\n(Unnamed Layer* 4) [Fully Connected]_output: ${scale(1)}\na: b: 40000000\nzero: 00000000\n`,
    );
    writeCalibration(path('max.cache'), identity, ranges);
    expect(readFileSync(path('max.cache'), 'utf8')).toMatch(/^TRT-8602-MinMaxCalibration\n/);
  });

  test('is read again, whatever version wrote it', () => {
    const table = path('v.cache', 'TRT-100600-EntropyCalibration2\r\ninput: 3c010a14\r\na: b: 40000000\r\n');
    const { identity: origin, ranges: read } = readCalibration(table, identity);
    expect(origin).toBeNull();
    expect(read.get('a: b')).toEqual({ min: -254, max: 254, amax: 254 });
    expect(read.get('input')?.amax).toBeCloseTo(1, 3);
    expect(readCalibration(file).ranges.get('a: b')?.amax).toBe(254);
  });

  test.each(['x: 3c010a1', 'x: 7f800000', 'x: bc010a14', ': 3c010a14', 'x 1.5'])(
    '"%s" is no entry',
    (line) => {
      const table = path('bad.cache', `TRT-8602-EntropyCalibration2\nx: 3c010a14\n${line}\n`);
      expect(codeOf(() => readCalibration(table))).toMatchObject({ details: { line: 3 } });
    },
  );

  test('holds no name with a line end', () => {
    const broken = new Map([['a\nb', { min: 0, max: 1, amax: 1 }]]);
    expect(codeOf(() => writeCalibration(path('n.cache'), identity, broken))).toMatchObject({
      code: 'TF_CALIBRATION_INVALID',
    });
  });
});

test("ONNX Runtime's table has magnitudes", () => {
  const table = path('ort.cache', 'conv1 out 2.5\nfc 1e-3\n');
  expect([...readCalibration(table).ranges]).toEqual([
    ['conv1 out', { min: -2.5, max: 2.5, amax: 2.5 }],
    ['fc', { min: -1e-3, max: 1e-3, amax: 1e-3 }],
  ]);
});

test.each(['c.json', 'table.cache', 'ort.cache'])(
  'every mutation of %s is read or rejected with our error',
  (name) => {
    const original = readFileSync(path(name));
    let rejected = 0;
    for (const bytes of mutations(original, runs(2000))) {
      try {
        const { ranges: read } = readCalibration(path('mutated', bytes));
        for (const { amax } of read.values()) expect(amax).toBeGreaterThanOrEqual(0);
      } catch (error) {
        if (!(error instanceof TrtforgeError)) throw error;
        rejected++;
      }
    }
    expect(rejected).toBeGreaterThan(10);
  },
);
