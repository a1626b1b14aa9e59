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
import { openReference } from '../../../src/formats/reference/open.js';
import type {
  DamagedLine,
  ReadOptions,
  ReferenceChunk,
  WritableChunk,
} from '../../../src/formats/reference/reference.js';
import { writeReference } from '../../../src/formats/reference/write.js';
import { type Dtype, elementCount, packedBytes } from '../../../src/formats/tensor/dtype.js';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import type { Tensor } from '../../../src/formats/tensor/tensor.js';
import { integerTensor, numbersOf, tensorFrom } from '../../../src/formats/tensor/values.js';
import { mutations } from '../../support/mutations.js';
import { refusal } from '../../support/refusal.js';
import { runs } from '../../support/runs.js';

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
async function read(path: string, options?: ReadOptions): Promise<ReferenceChunk[]> {
  const reference = openReference(path);
  try {
    const chunks: ReferenceChunk[] = [];
    for await (const chunk of reference.chunks(options)) chunks.push(chunk);
    return chunks;
  } finally {
    reference.close();
  }
}
async function failure(path: string, options?: ReadOptions): Promise<TrtforgeError> {
  try {
    await read(path, options);
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

describe('a JSONL reference', () => {
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
      form: 'jsonl',
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
  test('any chunks are the same, in either form and from one to the other', async () => {
    await fc.assert(
      fc.asyncProperty(chunks, async (given) => {
        const jsonl = place();
        await writeReference(jsonl, given);
        const direct = await read(jsonl);
        const compact = place('compact');
        const again = place();
        {
          using reference = openReference(jsonl);
          await writeReference(compact, reference.chunks());
          using stored = openReference(compact);
          await writeReference(again, stored.chunks());
        }
        expect(plain(direct)).toEqual(plain(given));
        expect(plain(await read(compact))).toEqual(plain(given));
        expect(readFileSync(again).equals(readFileSync(jsonl))).toBe(true);
      }),
      { numRuns: 60, examples: [[[zeroBelowZero]]] },
    );
  });

  test('a compact reference stores state once', async () => {
    const states = [0, 1, 2, 3].map((chunk) => floats([1000], Array(1000).fill(chunk)));
    const stream = [0, 1, 2].map((index) => ({
      index,
      inputs: new Map([
        ['x', integerTensor('int64', [1], [index])],
        ['state', states[index]!],
      ]),
      outputs: new Map([['state_out', states[index + 1]!]]),
      metadata: {},
    }));
    const path = place('ref');
    const written = await writeReference(path, stream);
    expect(written).toMatchObject({ form: 'compact', chunks: 3, tensorBytes: 6 * 4000 + 3 * 8 });
    expect(written.bytes).toBeLessThan(4 * 4000 + 3 * 1500);
    expect(readdirSync(path).sort()).toEqual([
      'chunk-000000.npz',
      'chunk-000001.npz',
      'chunk-000002.npz',
      'chunks.jsonl',
      'reference.json',
    ]);
    using reference = openReference(path);
    expect(reference.header).toMatchObject({ form: 'compact', chunks: 3, bytes: written.bytes });
    expect(plain(await read(path))).toEqual(plain(stream));
  });

  test('another shape of the same bytes is another tensor', async () => {
    const path = place('ref');
    const bytes = new Uint8Array(8);
    const tensor = (dtype: Dtype, shape: number[]): Tensor => ({ dtype, shape, bytes });
    const stream = [
      {
        index: 0,
        inputs: new Map([
          ['a', tensor('float32', [2])],
          ['b', tensor('float32', [1, 2])],
          ['c', tensor('int64', [1])],
        ]),
        outputs: new Map([['y', tensor('float32', [2])]]),
        metadata: {},
      },
    ];
    await writeReference(path, stream);
    expect(plain(await read(path))).toEqual(plain(stream));
  });

  test('takes the place of an older one, and never of other files', async () => {
    const stream = (value: number) => [
      {
        index: value,
        inputs: new Map([['x', floats([1], [value])]]),
        outputs: new Map([['y', floats([1], [value])]]),
        metadata: {},
      },
    ];
    const path = place('ref');
    await writeReference(path, stream(1));
    await writeReference(path, stream(2));
    expect((await read(path)).map(({ index }) => index)).toEqual([2]);
    expect(readdirSync(join(path, '..'))).toEqual(['ref']);
    const other = join(place('x'), '..');
    writeFileSync(join(other, 'mine.txt'), 'mine');
    await expect(writeReference(other, stream(1))).rejects.toMatchObject({ code: 'TF_USAGE' });
    expect(readdirSync(other)).toEqual(['mine.txt']);
  });

  test.each(['ref.jsonl', 'ref'])('leaves nothing behind when the chunks end badly: %s', async (name) => {
    const path = place(name);
    function* failing() {
      yield { index: 0, inputs: new Map([['x', floats([1], [1])]]), outputs: new Map(), metadata: {} };
      throw new TrtforgeError('TF_CANCELLED', 'enough');
    }
    await expect(writeReference(path, failing())).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    expect(readdirSync(join(path, '..'))).toEqual([]);
  });

  test.each(['ref.jsonl', 'ref'])('a signal comes in between two chunks: %s', async (name) => {
    const path = place(name);
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

  test('a compact reference that lost whole lines at its end is told', async () => {
    const path = place('ref');
    const chunk = (index: number) => ({
      index,
      inputs: new Map([['x', floats([4], [index, 0, 0, 0])]]),
      outputs: new Map(),
      metadata: {},
    });
    await writeReference(path, [chunk(0), chunk(1), chunk(2)]);
    const index = join(path, 'chunks.jsonl');
    writeFileSync(index, readFileSync(index, 'utf8').split('\n').slice(0, 2).join('\n'));
    expect((await failure(path)).message).toMatch(/chunks\.jsonl is damaged: it ends after 2 of 3 chunks/);
    using reference = openReference(path);
    const told: number[] = [];
    const read: number[] = [];
    for await (const { index: at } of reference.chunks({ onDamaged: ({ line }) => told.push(line) }))
      read.push(at);
    expect([read, told]).toEqual([[0, 1], [3]]);
    // Whoever asks for no more than there is does not miss the rest.
    for await (const { index: at } of reference.chunks({ limit: 2 })) read.push(at);
    expect(read).toEqual([0, 1, 0, 1]);
  });

  test('a damaged compact reference is told', async () => {
    const path = place('ref');
    const x = floats([64], Array(64).fill(1));
    await writeReference(path, [{ index: 0, inputs: new Map([['x', x]]), outputs: new Map(), metadata: {} }]);
    const npz = join(path, 'chunk-000000.npz');
    const bytes = readFileSync(npz);
    bytes[bytes.length >> 1] = bytes[bytes.length >> 1]! ^ 1;
    writeFileSync(npz, bytes);
    expect((await failure(path)).message).toContain('Line 1');
    rmSync(npz);
    expect((await failure(path)).message).toContain('does not exist');
    writeFileSync(join(path, 'reference.json'), '{"schema":"other"}');
    expect(refusal(() => openReference(path)).code).toBe('TF_REFERENCE_INVALID');
    rmSync(join(path, 'reference.json'));
    expect(refusal(() => openReference(path)).message).toMatch(/reference\.json/);
  });
});
