import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { timesByOperator } from '../../../src/engines/layers/summary.js';
import { exploreLayers } from '../../../src/products/explore/explore.js';

const fixtures = join(import.meta.dirname, '../../fixtures');
type Side = Parameters<typeof exploreLayers>[0]['sides'][number];
const side = (layers: string, profile?: string): Side => ({
  file: join(fixtures, 'engine-layers', layers),
  from: profile === undefined ? [] : [join(fixtures, 'trtexec-runs', profile)],
  shapes: new Map(),
});
const old = side('8.6-resnet50-fp16.json', '8.6-profile_b8.json');
const current = side('10.6-resnet50-fp16.json', '10.6-profile_b32.json');
const explored = (...sides: readonly Side[]) =>
  exploreLayers(
    { sides, output: undefined, as: 'page' },
    { emit: () => {}, signal: new AbortController().signal, environment: {}, kinds: [] },
  );
const sum = (values: readonly (number | null)[]) =>
  values.reduce((total: number, each) => total + (each ?? 0), 0);

describe('two engines beside each other, 8.6 and 10.6', () => {
  test('every row is in one group, and times add up by group, by operator and by row', async () => {
    const { sides, comparison, operators } = await explored(old, current);
    const groups = comparison!.groups;
    for (const [index, key] of (['a', 'b'] as const).entries()) {
      const { rows, timing } = sides[index]!;
      expect(groups.flatMap((group) => group[key]).sort((one, other) => one - other)).toEqual(
        rows.map((_, row) => row),
      );
      const total = timing!.totalMs;
      expect(sum(groups.map((group) => group[`${key}Ms`]))).toBeCloseTo(total, 9);
      expect(sum(operators.map(({ sides: of }) => of[index]!.ms))).toBeCloseTo(total, 9);
      expect(sum(rows.map(({ ms }) => ms))).toBeCloseTo(total, 9);
      expect(sum(rows.map(({ share }) => share))).toBeCloseTo(1, 9);
      expect(sum(operators.map(({ sides: of }) => of[index]!.layers))).toBe(rows.length);
    }
    // The average of trtexec's own profile over 975 runs.
    expect(sides[0]!.timing).toMatchObject({ runs: 975, measuredMs: null });
    expect(operators[0]!.op).toBe('Conv');
  });

  test('layers of the same nodes are together whatever they are called', async () => {
    const { sides, comparison } = await explored(old, current);
    const conv = comparison!.groups.find(({ a }) =>
      a.some((row) => sides[0]!.rows[row]!.onnx.includes('/conv1/Conv')),
    )!;
    expect(conv.b.map((row) => sides[1]!.rows[row]!.onnx)).toEqual([['/conv1/Conv', '/relu/Relu']]);
    const { counts, newReformats, goneReformats } = comparison!;
    expect(counts.same + counts.changed).toBeGreaterThan(140);
    const alone = (change: string) =>
      comparison!.groups.filter((group) => group.copies && group.change === change);
    expect([newReformats, goneReformats]).toEqual([alone('only-b').length, alone('only-a').length]);
  });

  test('the words of TensorRT 11 for the same layers change nothing: format and type apart, tensors for bindings', async () => {
    const { Layers, Bindings } = JSON.parse(readFileSync(current.file, 'utf8')) as {
      readonly Layers: readonly Record<string, object>[];
      readonly Bindings: readonly string[];
    };
    const apart = ({ 'Format/Datatype': format = '', ...rest }: Record<string, unknown>) => ({
      ...rest,
      Format: format,
      Datatype: / FP16 /.test(String(format)) ? 'Half' : / FP32$/.test(String(format)) ? 'Float' : format,
    });
    const file = join(mkdtempSync(join(tmpdir(), 'trtforge-explore-11-')), '11.json');
    const modern = Layers.map(({ Inputs, Outputs, ...rest }) => ({
      ...rest,
      Inputs: (Inputs as Record<string, unknown>[]).map(apart),
      Outputs: (Outputs as Record<string, unknown>[]).map(apart),
    }));
    const io = Bindings.map((Name, index) => ({ Name, IOMode: index === 0 ? 'Input' : 'Output' }));
    writeFileSync(file, JSON.stringify({ Layers: modern, 'I/O Tensors': io }));
    const { sides, comparison } = await explored(current, { ...current, file });
    rmSync(dirname(file), { recursive: true });
    expect(comparison!.counts).toMatchObject({ same: comparison!.groups.length, changed: 0 });
    expect(sides[1]!.tensors).toEqual(sides[0]!.tensors);
    expect(sides[1]!.rows).toEqual(sides[0]!.rows);
  });

  test('an engine beside itself differs in nothing', async () => {
    const { comparison } = await explored(old, old);
    expect(comparison!.counts).toMatchObject({ changed: 0, fused: 0, onlyA: 0, onlyB: 0 });
    expect(comparison!.groups.every(({ aMs, bMs }) => aMs === bMs)).toBe(true);
  });
});

describe('rows', () => {
  test('a copy of weights is told from a copy of activations', async () => {
    const { sides } = await explored(old);
    const { rows } = sides[0]!;
    const first = rows.find(({ name }) =>
      name.startsWith('Reformatting CopyNode for Input Tensor 0 to /conv1'),
    )!;
    expect(first).toMatchObject({ copies: true, constant: false, operator: 'reformat', flops: null });
    expect(rows.filter(({ copies, constant }) => copies && constant)).toHaveLength(47);
  });

  test('edges lead from the row that writes a tensor to those that read it', async () => {
    const { sides } = await explored(current);
    const { rows, tensors } = sides[0]!;
    const pool = rows.find(({ name }) => name === '/maxpool/MaxPool')!;
    const [input] = pool.inputs;
    expect(tensors[input!]).toMatchObject({
      name: '/relu/Relu_output_0',
      dtype: 'float16',
      shape: [32, 64, 112, 112],
    });
    expect(rows.find(({ outputs }) => outputs.includes(input!))!.name).toBe('/conv1/Conv + /relu/Relu');
  });
});

describe('time by ONNX operator', () => {
  const layer = (onnxNodes: readonly string[], ms: number | null, more = {}) => ({
    ...{ name: onnxNodes.join(' + '), type: 'kgen', copies: false, ms },
    onnxNodes: [...onnxNodes],
    ...more,
  });

  test('counts a fused layer for the node with the most FLOPs', () => {
    const nodes = new Map([
      ['r', { op: 'Relu', flops: 10 }],
      ['c', { op: 'Conv', flops: 1000 }],
    ]);
    const times = timesByOperator([[layer(['r', 'c'], 2), layer(['r'], 1)]], [nodes]);
    expect(times.map(({ op, sides: [of] }) => [op, of!.ms])).toEqual([
      ['Conv', 2],
      ['Relu', 1],
    ]);
  });

  test('reads operators in names where no model is known, and never invents one', () => {
    const times = timesByOperator([
      [
        layer(['/a/Add_1', '/a/Conv'], 3),
        layer(['encoder.conv1'], 2),
        layer([], 1),
        layer(['/x/Mul'], null),
        layer(['/a/Add'], 1, { copies: true }),
      ],
    ]);
    expect(Object.fromEntries(times.map(({ op, sides: [of] }) => [op, of!.ms]))).toEqual({
      Conv: 3,
      kgen: 2,
      'no ONNX node': 1,
      reformat: 1,
      Mul: null,
    });
  });
});
