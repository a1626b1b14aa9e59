import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import {
  type DamagedLine,
  openReference,
  type Reference,
  type ReferenceChunk,
  type WritableChunk,
} from '../../../src/formats/reference/reference.js';
import { type Dtype, elementCount, packedBytes } from '../../../src/formats/tensor/dtype.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { numbersOf, type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';
import { writeReference } from '../../support/write-reference.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-reference-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const place = (name = 'ref.jsonl') => {
  const inside = join(folder, `${files++}`);
  mkdirSync(inside);
  return join(inside, name);
};
const fileOf = (...lines: string[]) => {
  const path = place();
  writeFileSync(path, lines.join('\n'));
  return path;
};
async function read(path: string, ...options: Parameters<Reference['chunks']>): Promise<ReferenceChunk[]> {
  const reference = openReference(path);
  try {
    const chunks: ReferenceChunk[] = [];
    for await (const chunk of reference.chunks(...options)) chunks.push(chunk);
    return chunks;
  } finally {
    reference.close();
  }
}
async function failure(path: string, ...options: Parameters<Reference['chunks']>): Promise<TrtforgeError> {
  try {
    await read(path, ...options);
  } catch (error) {
    if (error instanceof TrtforgeError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

const floats = (shape: readonly number[], values: readonly number[]) =>
  tensorFrom('float32', shape, Float32Array.from(values));
const base64 = ({ dtype, shape, bytes }: Tensor) =>
  JSON.stringify({ dtype, shape, data_b64: Buffer.from(bytes).toString('base64') });
const line = (index: number, inputs: string, outputs = '{"y":[1]}', metadata = '{}') =>
  `{"chunk_idx": ${index}, "inputs": ${inputs}, "outputs": ${outputs}, "metadata": ${metadata}}`;

/** Bit by bit, so that NaN and signed zeros count. */
const plain = (chunks: readonly (ReferenceChunk | WritableChunk)[]) =>
  chunks.map((chunk) => ({
    index: chunk.index,
    ...Object.fromEntries(
      (['inputs', 'outputs'] as const).map((side) => [
        side,
        [...chunk[side]].map(([name, { dtype, shape, bytes }]) => [
          name,
          dtype,
          [...shape],
          Buffer.from(bytes).toString('hex'),
        ]),
      ]),
    ),
    metadata: 'meta' in chunk ? chunk.meta.recorded : chunk.metadata,
  }));

describe('a recorded stream', () => {
  test('takes the three encodings of a tensor', async () => {
    const path = place();
    const tensor = floats([2, 3], [1, -2.5, 3, 0.1, Number.NaN, 1e-40]);
    writeNpy(join(path, '..', 'beside.npy'), tensor);
    writeFileSync(
      path,
      `${line(7, `{"a": ${base64(tensor)}, "b": [[1.0, -2.5, 3], [0.1, NaN, 1e-40]], "c": {"npy_path": "beside.npy"}, "n": [3], "s": 2, "f": 2.0}`)}\n`,
    );
    const [chunk] = await read(path);
    const { a, b, c, n, s, f } = Object.fromEntries(chunk!.inputs);
    for (const same of [a, b, c]) {
      expect(same).toMatchObject({ dtype: 'float32', shape: [2, 3] });
      expect(Buffer.from(same!.bytes).equals(Buffer.from(tensor.bytes))).toBe(true);
    }
    expect([n?.dtype, Array.from(numbersOf(n!)), s?.shape, s?.dtype, f?.dtype]).toEqual([
      'int64',
      [3],
      [],
      'int64',
      'float32',
    ]);
    expect(chunk?.index).toBe(7);
  });

  test.each<[string, Dtype, number[]]>([
    ['float16', 'float16', [3]],
    ['bool', 'bool', [5]],
    ['int64', 'int64', []],
    ['nothing', 'float32', [0, 4]],
    ['bfloat16', 'bfloat16', [1, 2]],
    ['packed int4', 'int4', [3]],
  ])('keeps %s bit by bit', async (_, dtype, shape) => {
    const bytes = Uint8Array.from({ length: packedBytes(dtype, elementCount(shape)) }, (__, i) => i % 2);
    const path = fileOf(line(0, `{"x": ${base64({ dtype, shape, bytes })}}`));
    expect((await read(path))[0]?.inputs.get('x')).toMatchObject({ dtype, shape, bytes });
  });

  test('has what was recorded beside the tensors, under our names and as it was', async () => {
    const metadata =
      '{"chunk_len": 41, "encoded_lengths_value": 3, "cache_len_out_value": 4, "cache_len_out_raw_value": -67, "timing_ms": {"step": 20.5}, "note": "\\u00e9\\n", "nan": NaN, "list": [1, [2, null, true]]}';
    const [chunk] = await read(fileOf('', line(0, '{"x": [1]}', '{"y": [2]}', metadata)));
    expect(chunk?.meta).toMatchObject({
      line: 2,
      chunkLength: 41,
      encodedLength: 3,
      stateLength: 4,
      stateLengthRaw: -67,
      stepMs: 20.5,
      recorded: { note: 'é\n', nan: Number.NaN, list: [1, [2, null, true]] },
    });
  });

  test('states names, dtypes and shapes without reading on', () => {
    const path = fileOf(line(0, '{"x": [[1.5, 2]]}'), '{"cut');
    using reference = openReference(path);
    expect(reference.header).toMatchObject({
      provenance: null,
      inputs: [{ name: 'x', dtype: 'float32', shape: [1, 2] }],
      outputs: [{ name: 'y', dtype: 'int64', shape: [1] }],
    });
  });

  test('reads only what is asked for, as often as asked', async () => {
    const path = fileOf(line(0, '{"x": [1]}'), line(1, '{"x": [2]}'), line(2, '{"x": [3]}'));
    const chunks = await read(path, {
      select: (side, _, position) => side === 'inputs' && position > 0,
      limit: 2,
    });
    expect(chunks.map(({ inputs, outputs }) => [inputs.size, outputs.size])).toEqual([
      [0, 0],
      [1, 0],
    ]);
  });

  test('every chunk has memory of its own', async () => {
    const lines = [1, 2, 3, 4].map((value) => line(value, `{"x": ${base64(floats([2], [value, value]))}}`));
    using reference = openReference(fileOf(...lines));
    const seen: (number | undefined)[] = [];
    const memory = new Set<ArrayBufferLike>();
    for await (const { inputs } of reference.chunks()) {
      seen.push(numbersOf(inputs.get('x')!)[1]);
      memory.add(inputs.get('x')!.bytes.buffer);
    }
    expect(seen).toEqual([1, 2, 3, 4]);
    expect(memory.size).toBe(4);
  });

  test.each(['a quote \\" inside', 'a slash \\\\', 'a \\/ slash', 'x'.repeat(5000)])(
    'passes over strings: %s',
    async (text) => {
      const path = fileOf(line(0, '{"x": [1]}', '{"y": [1]}', `{"text": "${text}"}`), line(1, '{"x": [9]}'));
      const chunks = await read(path);
      expect(chunks[0]?.meta.recorded.text).toBe(JSON.parse(`"${text}"`));
      expect(Array.from(numbersOf(chunks[1]!.inputs.get('x')!))).toEqual([9]);
    },
  );

  test('takes base64 with escaped slashes', async () => {
    const tensor = floats(
      [1500],
      Array.from({ length: 1500 }, (_, i) => i * 1.1),
    );
    const text = base64(tensor).replaceAll('/', '\\/');
    const path = fileOf(line(0, `{"x": ${text}}`));
    expect(Buffer.from((await read(path))[0]!.inputs.get('x')!.bytes).equals(Buffer.from(tensor.bytes))).toBe(
      true,
    );
  });

  test('reads lists of several megabytes', async () => {
    const values = Float32Array.from({ length: 200_000 }, (_, i) => Math.sin(i));
    const rows = Array.from({ length: 2 }, (_, row) => [
      ...values.subarray(row * 100_000, (row + 1) * 100_000),
    ]);
    const path = fileOf(line(0, `{"x": ${JSON.stringify(rows)}}`));
    const tensor = (await read(path))[0]!.inputs.get('x')!;
    expect(tensor).toMatchObject({ dtype: 'float32', shape: [2, 100_000] });
    expect(Buffer.from(tensor.bytes).equals(Buffer.from(values.buffer))).toBe(true);
  });
});

describe('a damaged line', () => {
  const good = line(0, `{"x": ${base64(floats([3], [1, 2, 3]))}}`);
  const tensor = (text: string) => line(1, `{"x": ${text}}`);
  test.each([
    ['cut short within base64', good.slice(0, good.indexOf('data_b64') + 15), 'cut short'],
    ['cut short after a value', good.slice(0, -1), 'cut short'],
    [
      'too little base64',
      tensor('{"dtype":"float32","shape":[3],"data_b64":"AAAA"}'),
      '[3] of float32 needs 16',
    ],
    ['other characters', tensor('{"dtype":"uint8","shape":[3],"data_b64":"A*AA"}'), 'other characters'],
    ['an unknown dtype', tensor('{"dtype":"float33","shape":[3],"data_b64":"AAAA"}'), 'float33'],
    ['a negative shape', tensor('{"dtype":"float32","shape":[-3],"data_b64":"AAAA"}'), 'shape'],
    [
      'a shape of terabytes',
      tensor('{"dtype":"float32","shape":[9000000000000],"data_b64":"AAAA"}'),
      'shape',
    ],
    ['ragged lists', tensor('[[1,2],[3]]'), 'ragged'],
    ['lists and numbers', tensor('[[1,2],3]'), 'both lists and numbers'],
    ['text in a list', tensor('[1,"a"]'), 'other than numbers'],
    ['an integer that no double holds', tensor('[9007199254740993]'), '2^53'],
    ['a missing npy file', tensor('{"npy_path":"none.npy"}'), 'none.npy'],
    ['no tensor at all', tensor('{"shape":[1]}'), 'neither data_b64 nor npy_path'],
    ['something after its end', `${good} {}`, 'not JSON'],
    ['no JSON', 'nonsense', 'not JSON'],
    ['an index that is none', line(1.5, '{"x":[1]}'), 'chunk_idx'],
    ['no tensors', '{"chunk_idx":1,"inputs":{},"outputs":{}}', 'no tensors'],
    ['deep nesting', line(1, '{"x":[1]}', '{"y":[1]}', `{"a":${'['.repeat(90)}${']'.repeat(90)}}`), 'deeper'],
    [
      'brackets without end',
      line(1, '{"x":[1]}', '{"y":[1]}', `{"a":${'['.repeat(100_000)}`),
      'more than 100 levels',
    ],
    ['inputs that are a list', line(1, '[1]'), 'inputs is not an object'],
    ['a tensor that is text', tensor('"a"'), 'neither'],
    ['deep lists', tensor(`${'['.repeat(90)}${']'.repeat(90)}`), 'deeper'],
  ])('is named by its number: %s', async (_, damaged, why) => {
    const path = fileOf(good, damaged, line(2, '{"x": [5]}'));
    const error = await failure(path);
    expect(error).toMatchObject({ code: 'TF_REFERENCE_INVALID', details: { line: 2 } });
    expect(error.message).toContain('Line 2');
    expect(error.message).toContain(why);
    const skipped: DamagedLine[] = [];
    const chunks = await read(path, { onDamaged: (damage) => skipped.push(damage) });
    expect(chunks.map(({ index }) => index)).toEqual([0, 2]);
    expect(skipped.map(({ line: number }) => number)).toEqual([2]);
  });

  test('everywhere makes a file that cannot be opened', () => {
    expect(refusal(() => openReference(fileOf('a', 'b'))).message).toContain('Line 1');
    expect(refusal(() => openReference(fileOf(''))).message).toContain('is empty');
    expect(refusal(() => openReference(join(folder, 'none'))).code).toBe('TF_FILE_NOT_FOUND');
  });

  test('names files beside of more bytes than a chunk has: no memory is taken for them', async () => {
    const path = fileOf(good, line(1, '{"x": {"npy_path": "large.npy"}}'), line(2, '{"x": [5]}'));
    const large = join(path, '..', 'large.npy');
    writeNpy(large, { dtype: 'uint8', shape: [2 ** 33], bytes: new Uint8Array() });
    truncateSync(large, 2 ** 33 + 128);
    expect(await failure(path)).toMatchObject({
      details: { line: 2 },
      message: expect.stringContaining('4294967296 bytes'),
    });
    rmSync(large);
  });

  test('never crashes a reader', async () => {
    const path = place();
    writeNpy(join(path, '..', 'beside.npy'), floats([2], [1, 2]));
    const original = [
      good,
      line(
        1,
        '{"x": [[1.5, -2e3], [NaN, 4]], "z": {"npy_path": "beside.npy"}}',
        '{"y": 1}',
        '{"a": [1, {"b": "c\\\\"}]}',
      ),
    ].join('\n');
    let refused = 0;
    for (const bytes of mutations(Buffer.from(original), runs(2000), 3)) {
      writeFileSync(path, bytes);
      try {
        await read(path);
      } catch (error) {
        if (!(error instanceof TrtforgeError)) throw error;
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(runs(800));
  });
});

const dtypesDrawn: Dtype[] = ['float32', 'float16', 'float64', 'int64', 'int32', 'uint8', 'bool'];
const tensors = fc
  .record({ dtype: fc.constantFrom(...dtypesDrawn), shape: fc.array(fc.nat(4), { maxLength: 3 }) })
  .chain(({ dtype, shape }) => {
    const bytes = packedBytes(dtype, elementCount(shape));
    return fc
      .uint8Array({ minLength: bytes, maxLength: bytes })
      .map((content): Tensor => ({ dtype, shape, bytes: content }));
  });
const names = fc
  .string({ minLength: 1, maxLength: 6, unit: 'grapheme' })
  .filter((name) => name !== '__proto__');
const sides = fc
  .dictionary(names, tensors, { minKeys: 1, maxKeys: 3 })
  .map((all) => new Map(Object.entries(all)));
const chunks = fc.array(
  fc.record({
    index: fc.nat(),
    inputs: sides,
    outputs: sides,
    metadata: fc.dictionary(
      names,
      fc.oneof(fc.double(), fc.string(), fc.constant(null), fc.array(fc.boolean())),
    ),
  }),
  { minLength: 1, maxLength: 4 },
);

const zeroBelowZero = {
  index: 0,
  inputs: new Map([['x', floats([1], [-0])]]),
  outputs: new Map(),
  metadata: { delay: -0 },
};

describe('written and read again', () => {
  test('any chunks are the same', async () => {
    await fc.assert(
      fc.asyncProperty(chunks, async (given) => {
        const [path, again] = [place(), place()];
        await writeReference(path, given);
        using reference = openReference(path);
        await writeReference(again, reference.chunks());
        expect(plain(await read(path))).toEqual(plain(given));
        expect(readFileSync(again).equals(readFileSync(path))).toBe(true);
      }),
      { numRuns: 60, examples: [[[zeroBelowZero]]] },
    );
  });

  test('has the ending by which samples are known to be a stream', async () => {
    const other = place('ref');
    await expect(writeReference(other, [zeroBelowZero])).rejects.toMatchObject({ code: 'TF_USAGE' });
    expect(existsSync(other)).toBe(false);
  });

  test('leaves nothing behind when the chunks end badly', async () => {
    const path = place();
    function* failing() {
      yield { index: 0, inputs: new Map([['x', floats([1], [1])]]), outputs: new Map(), metadata: {} };
      throw new TrtforgeError('TF_CANCELLED', 'enough');
    }
    await expect(writeReference(path, failing())).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    expect(readdirSync(join(path, '..'))).toEqual([]);
  });

  test('a signal comes in between two chunks', async () => {
    const path = place();
    const chunk = (index: number) => ({
      index,
      inputs: new Map([['x', floats([1], [index])]]),
      outputs: new Map(),
      metadata: {},
    });
    await writeReference(
      path,
      Array.from({ length: 20 }, (_, index) => chunk(index)),
    );
    using reference = openReference(path);
    const stop = new AbortController();
    setImmediate(() => stop.abort());
    const copy = join(path, '..', 'copy.jsonl');
    const copying = writeReference(copy, reference.chunks({ signal: stop.signal }), { signal: stop.signal });
    await expect(copying).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    expect(existsSync(copy)).toBe(false);
  });
});
