import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { elementCount, packedBytes } from '../../../src/formats/tensor/dtype.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { numbersOf } from '../../../src/formats/tensor/tensor.js';
import { loadedSlot, type TensorReader } from '../../../src/formats/tensor/tensor-reader.js';
import { openPolygraphy } from '../../../src/quality/verify/polygraphy.js';
import { mutations } from '../../support/mutations.js';

const fixture = (name: string) =>
  fileURLToPath(new URL(`../../fixtures/polygraphy/${name}`, import.meta.url));
const folder = await mkdtemp(join(tmpdir(), 'trtforge-polygraphy-'));

function valuesOf(reader: TensorReader): number[] {
  const bytes = new Uint8Array(packedBytes(reader.dtype, elementCount(reader.shape)));
  reader.readBytes(0, bytes);
  return Array.from(numbersOf({ dtype: reader.dtype, shape: reader.shape, bytes }));
}

function opened(path: string) {
  const file = openPolygraphy(path, loadedSlot());
  try {
    return file.runners.map(({ name, iterations }) => ({
      name,
      iterations: iterations.map((run) =>
        Object.fromEntries(
          [...run].map(([output, reader]) => [
            output,
            { dtype: reader.dtype, shape: reader.shape, values: valuesOf(reader) },
          ]),
        ),
      ),
    }));
  } finally {
    file.close();
  }
}

/** A file of inputs that holds these bytes, and what reads them. */
function recorded(bytes: Uint8Array) {
  const [npy, path] = [join(folder, 'recorded.npy'), join(folder, 'recorded.json')];
  writeNpy(npy, { dtype: 'uint8', shape: [bytes.length], bytes });
  writeFileSync(path, JSON.stringify([{ x: { array: readFileSync(npy).toString('base64') } }]));
  const file = openPolygraphy(path, loadedSlot());
  return { file, tensor: file.runners[0]!.iterations[0]!.get('x')! };
}

describe('base64 within a file', () => {
  it.each([200, 8_000])('is read from anywhere: %i bytes', (most) => {
    const place = fc.tuple(
      fc.uint8Array({ minLength: most - 6, maxLength: most }),
      fc.nat(most),
      fc.nat(most),
    );
    fc.assert(
      fc.property(place, ([bytes, from, length]) => {
        const wanted = bytes.slice(from, from + length);
        const { file, tensor } = recorded(bytes);
        const target = new Uint8Array(wanted.length);
        tensor.readBytes(from, target);
        file.close();
        expect(target).toEqual(wanted);
      }),
      { numRuns: 50 },
    );
  });

  it('is read in steps when there is much of it', () => {
    const bytes = Uint8Array.from({ length: 2_000_003 }, (_, i) => (i * 7) & 255);
    const { file, tensor } = recorded(bytes);
    const target = new Uint8Array(bytes.length - 5);
    tensor.readBytes(5, target);
    file.close();
    expect(Buffer.compare(target, bytes.subarray(5))).toBe(0);
  });

  it.each(['!', 'é', '='])('that holds %s is rejected where the bytes run out', (character) => {
    const bytes = new Uint8Array(9_000);
    const { file } = recorded(bytes);
    file.close();
    const path = join(folder, 'recorded.json');
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, `${text.slice(0, 6_000)}${character}${text.slice(6_001)}`);
    expect(() => opened(path)).toThrow(TrtforgeError);
  });
});

describe("Polygraphy's JSON", () => {
  const newest = opened(fixture('results.json'));

  it('has runners, iterations and tensors of every type', () => {
    expect(newest.map(({ name, iterations }) => [name, iterations.length])).toEqual([['onnxrt-runner', 2]]);
    const [first] = newest[0]?.iterations ?? [];
    expect(Object.entries(first ?? {}).map(([name, { dtype, shape }]) => [name, dtype, shape])).toEqual([
      ['logits', 'float32', [2, 300]],
      ['half', 'float16', [3, 5]],
      ['index', 'int64', [4]],
      ['flags', 'bool', [2, 3]],
      ['scalar', 'float32', []],
    ]);
    expect(first?.scalar?.values).toEqual([2.5]);
  });

  it.each(['legacy-latin1.json', 'legacy-npz.json'])('states the same in the format of %s', (name) => {
    expect(opened(fixture(name))).toEqual(newest);
  });

  it('keeps several runners apart', () => {
    expect(opened(fixture('two-runners.json')).map(({ name }) => name)).toEqual([
      'onnxrt-runner',
      'trt-runner',
    ]);
  });

  it('may be recorded inputs, which have no runner', () => {
    expect(opened(fixture('inputs.json'))).toEqual([
      {
        name: null,
        iterations: [
          { x: { dtype: 'float32', shape: [2, 3], values: [0, 1, 2, 3, 4, 5] } },
          { x: { dtype: 'float32', shape: [1, 3], values: [1, 1, 1] } },
        ],
      },
    ]);
  });

  it('reads any part of a tensor as it reads all of it', () => {
    const file = openPolygraphy(fixture('results.json'), loadedSlot());
    const logits = file.runners[0]?.iterations[1]?.get('logits');
    const whole = new Uint8Array(2400);
    logits?.readBytes(0, whole);
    for (const [from, length] of [
      [0, 1],
      [1, 2],
      [4, 400],
      [1199, 64],
      [2399, 1],
    ] as const) {
      const part = new Uint8Array(length);
      logits?.readBytes(from, part);
      expect(part).toEqual(whole.slice(from, from + length));
    }
    file.close();
  });

  it.each([
    ['nothing', '', /end of JSON input/],
    ['a number', '7', /neither results nor inputs/],
    ['results that are no list', '{"lst": 3}', /not a list/],
    ['a runner without iterations', '{"lst": [["r"]]}', /no name or no iterations/],
    ['an array that is no npy', '[{"x": {"array": "AAAA"}}]', /npy/],
    ['a tensor of PyTorch', '[{"x": {"tensor": "AAAA", "polygraphy_class": "Tensor"}}]', /PyTorch/],
    ['brackets without end', '['.repeat(100_000), /JSON/],
    ['a string without end', '[{"x', /Unterminated string/],
    ['two values', '[] []', /after JSON/],
  ])('rejects %s by name', (_case, text, reason) => {
    const path = join(folder, 'refused.json');
    writeFileSync(path, text);
    expect(() => opened(path)).toThrow(reason);
    expect(() => opened(path)).toThrow(TrtforgeError);
  });

  it.each(['results.json', 'legacy-latin1.json', 'legacy-npz.json', 'inputs.json'])(
    'reads or rejects every damaged copy of %s',
    (name) => {
      const original = new Uint8Array(readFileSync(fixture(name)));
      const path = join(folder, `damaged-${name}`);
      for (const damaged of mutations(original, 300)) {
        writeFileSync(path, damaged);
        try {
          opened(path);
        } catch (error) {
          expect(error).toBeInstanceOf(TrtforgeError);
        }
      }
    },
  );
});
