import { describe, expect, it } from 'vitest';
import { bytesSource } from '../../../src/base/files/byte-source.js';
import { type PlanProgram, programIn } from '../../../src/engines/plan/program.js';
import { mutations } from '../../support/mutations.js';
import { runs } from '../../support/runs.js';
import { samplePlan } from '../../support/sample-engine.js';
import { generated, operation, planWithPrograms, programText, type WrittenGraph } from './program-plan.js';

const read = (bytes: Uint8Array) => programIn(bytesSource('p.engine', bytes));
const readTexts = (...texts: readonly string[]): PlanProgram => {
  const program = read(planWithPrograms(...texts));
  if (program === null) throw new Error('no program');
  return program;
};

const graph: WrittenGraph = {
  tensors: { x: 'half', codes: 'int8', w: 'int8', 'conv.out': 'half', w4: 'int4', y: 'float' },
  kernels: [
    generated('__myl_MulRounCast', ['x'], ['codes'], ['x_QuantizeLinear']),
    operation(
      'corrltn',
      'conv',
      ['codes', 'w', 'literal'],
      ['conv.out'],
      ['conv', 'relu', 'a "b"]\n{c} \\ [d'],
    ),
    'runtime_fusion={ name=__myl_MulFc input_args={ "conv.out" "w4" } output_args={ "y" } binary=0 layers="[ONNX Layer: fc]" }',
    operation('add', 'last', ['y', 'y'], ['y'], []),
  ],
};
const fusion: WrittenGraph = {
  accelerators: '*',
  tensors: { 'conv.out': 'half', w4: 'int4', y: 'float', weights: 'half' },
  kernels: [
    operation('mul', 'int4_block_dq', ['w4'], ['weights'], []),
    operation('fully_connected', 'fc', ['conv.out', 'weights'], ['y'], ['fc']),
  ],
};

describe('programIn', () => {
  it('reads kernels with the types of what they read and write, and their ONNX nodes', () => {
    const { graphs } = readTexts(programText(graph), programText(fusion));
    expect(graphs).toHaveLength(1);
    expect(graphs[0]).toMatchObject({ architectures: ['sm_89'] });
    expect(graphs[0]?.kernels.map(({ kind }) => kind)).toEqual([
      'function',
      'corrltn',
      'runtime_fusion',
      'add',
    ]);
    expect(graphs[0]?.kernels[0]).toEqual({
      kind: 'function',
      name: '__myl_MulRounCast',
      nodes: ['x_QuantizeLinear'],
      inputs: [{ name: 'x', dtype: 'float16', shape: [null, 64] }],
      outputs: [{ name: 'codes', dtype: 'int8', shape: [null, 64] }],
      parts: [],
    });
    expect(graphs[0]?.kernels[1]).toMatchObject({
      nodes: ['conv', 'relu', 'a "b"]\n{c} \\ [d'],
      inputs: [{ dtype: 'int8' }, { dtype: 'int8' }, { name: 'literal', dtype: null }],
    });
    expect(graphs[0]?.kernels[2]?.parts.map(({ name, inputs }) => [name, inputs.at(-1)?.dtype])).toEqual([
      ['int4_block_dq', 'int4'],
      ['fc', 'float16'],
    ]);
  });

  it('reads every section, and gives the parts of fusions to the graph before them', () => {
    const { graphs } = readTexts(
      programText({ ...graph, accelerators: 'sm86 sm120 ' }),
      programText(fusion),
      programText(graph),
    );
    expect(graphs.map(({ architectures }) => architectures)).toEqual([['sm_86', 'sm_120'], ['sm_89']]);
    expect(graphs.map(({ kernels }) => kernels[2]?.parts.length)).toEqual([2, 0]);
  });

  it('finds a section wherever pieces of the file end', () => {
    const plan = planWithPrograms(programText(graph));
    const at = plan.indexOf('header {');
    for (let end = 0; end <= 24; end++) {
      const padded = Buffer.concat([Buffer.alloc((4 << 20) + 16 - at - end), plan]);
      expect(read(padded)?.graphs, `${end}`).toHaveLength(1);
    }
  });

  it('has one digest for programs that differ in names only', () => {
    const digestOf = (changed: WrittenGraph) => readTexts(programText(changed)).digest;
    const renamed = (from: string, to: string): WrittenGraph => {
      const text = JSON.stringify(graph).replaceAll(from, to);
      return JSON.parse(text) as WrittenGraph;
    };
    const digest = digestOf(graph);
    expect(digestOf(renamed('conv', 'other'))).toBe(digest);
    expect(digestOf(renamed('codes', 'values'))).toBe(digest);
    expect(digestOf({ ...graph, tensors: { ...graph.tensors, w: 'half' } })).not.toBe(digest);
    expect(digestOf({ ...graph, kernels: graph.kernels.slice(1) })).not.toBe(digest);
    expect(digestOf({ ...graph, accelerators: 'sm90 ' })).not.toBe(digest);
    expect(digestOf(renamed('strides={ 1 1 }', 'strides={ 2 2 }'))).not.toBe(digest);
    const [quantize, conv, ...rest] = graph.kernels as [string, string, ...string[]];
    const other = conv.replace('"codes" "w"', '"w" "codes"');
    expect(digestOf({ ...graph, kernels: [quantize, other, ...rest] })).not.toBe(digest);
  });

  it('has one digest for statements of the shape program in any order', () => {
    const shapes = [
      'memset={ name="i1" output={"three" } src="3i64" stream=0 }',
      'memset={ name="i2" output={"four" } src="4i64" stream=0 }',
      operation('mul', 'm1', ['size', 'three'], ['a'], []),
      operation('mul', 'm2', ['size', 'four'], ['b'], []),
      operation('sub', 'm3', ['a', 'b'], ['c'], []),
    ];
    const tensors = { ...graph.tensors, three: 'int64', four: 'int64', a: 'int64', b: 'int64', c: 'int64' };
    const digestOf = (lines: readonly string[]) =>
      readTexts(programText({ ...graph, tensors, shapes: lines })).digest;
    const [three, four, left, right, difference] = shapes as [string, string, string, string, string];
    const digest = digestOf(shapes);
    expect(digestOf([four, three, right, left, difference])).toBe(digest);
    expect(digestOf([three, four, left, right, difference.replace('"a" "b"', '"b" "a"')])).not.toBe(digest);
    expect(digestOf([three, four, left, right])).not.toBe(digest);
  });

  it.each([
    ['a plan without a program', samplePlan()],
    ['nothing', Buffer.alloc(0)],
    ['another grammar', planWithPrograms('header {\n  version = 9\n')],
    ['a program without kernels', planWithPrograms('header {\n}\n')],
    ['deep nesting', planWithPrograms(`header {\n${'a={ '.repeat(100_000)}`)],
    ['a name of 8 MiB without an end', planWithPrograms(`header { a="${'\\"'.repeat(4 << 20)}`)],
    ['a fusion alone', planWithPrograms(programText(fusion))],
  ])('is null for %s', (_name, bytes) => {
    expect(read(bytes)).toBeNull();
  });

  it('ignores lengths beyond the file', () => {
    const plan = planWithPrograms(programText(graph));
    plan.writeBigUInt64LE(2n ** 63n, plan.indexOf('NLYM') + 8);
    expect(read(plan)).toBeNull();
  });

  it('reads each byte once or twice, whatever looks like a section', () => {
    const frame = (length: bigint) => {
      const bytes = Buffer.alloc(16);
      bytes.write('NLYM', 0, 'latin1');
      bytes.writeBigUInt64LE(length, 8);
      return bytes;
    };
    for (const piece of [
      [frame(2n ** 40n), Buffer.from('header {\n')],
      [frame(19n), Buffer.from('header {\n}\nmain {\n}\n')],
    ]) {
      const bytes = Buffer.alloc(6 << 20, Buffer.concat(piece));
      let count = 0;
      const source = bytesSource('p.engine', bytes);
      programIn({
        ...source,
        read: (target, position, length) => {
          count += length;
          return source.read(target, position, length);
        },
      });
      expect(count).toBeLessThan(2 * bytes.length + (1 << 20));
    }
  });

  it('is null for more text than a program has', () => {
    const padded = programText(graph) + ' '.repeat(15 << 20);
    expect(readTexts(padded, padded).graphs).toHaveLength(2);
    expect(read(planWithPrograms(padded, padded, padded, padded, padded))).toBeNull();
  });

  it('reads every mutation, or finds no program in it', () => {
    const texts = [programText(graph), programText(fusion)];
    const original = planWithPrograms(...texts).subarray(samplePlan().length);
    let readable = 0;
    for (const bytes of mutations(original, runs(4000))) if (read(bytes) !== null) readable++;
    expect(readable).toBeGreaterThan(runs(4000) / 20);
  });
});
