import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { type ConversionResult, conversionSchema } from '../../../src/formats/precision/result.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { type Tensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { describeWith } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-convert-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const model = join(folder, 'net.onnx');
const output = join(folder, 'net.fp16.onnx');

const floats = (shape: number[], values: number[]): Tensor => ({
  dtype: 'float32',
  shape,
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});

beforeAll(async () => {
  const g = new GraphBuilder('net');
  g.input('x', 'float32', [2, 4]);
  g.initializer(
    'w',
    floats(
      [4, 4],
      Array.from({ length: 16 }, (_, i) => i / 16),
    ),
  );
  g.node('MatMul', { name: 'encoder/product', inputs: ['x', 'w'], outputs: ['h'] });
  g.node('Exp', { name: 'encoder/exp', inputs: ['h'], outputs: ['e'] });
  g.node('MatMul', { name: 'decoder/product', inputs: ['e', 'w'], outputs: ['y'] });
  g.output('y', 'float32', [2, 4]);
  await writeModel(buildModel(g), model);
});

const convert = (...args: string[]) => trtforge(['convert', ...args]);

describe('trtforge convert', () => {
  it('writes the typed model and reports what stayed FP32 and why', async () => {
    const { exitCode, out } = await convert(model, '-o', output);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/net\.fp16\.onnx {2}FP16 {2}\d+ B → \d+ B/);
    expect(out).toContain('2 of 3 nodes with FP32 in them converted to FP16; 4 casts added, 0 removed');
    expect(out).toContain('FP32 Operator that stays FP32 by default  op-default, 1 node');
    expect(out).toContain('Exp encoder/exp: Exp squares or exponentiates its input');
    expect(existsSync(output)).toBe(true);
  });

  it('rejects a misspelt operator, but not one that this model lacks', async () => {
    const { exitCode, err } = await convert(model, '-o', output, '--keep-ops', 'Softmax,Matmul');
    expect(exitCode).toBe(2);
    expect(err).toContain('has an operator "Matmul"');
    expect(err).toContain('The model has Exp, MatMul');
  });

  it('prints one JSON object that fits its schema', async () => {
    const { exitCode, json } = await convert(
      model,
      '-o',
      output,
      '--precision',
      'bf16',
      '--keep-nodes',
      '^decoder/',
      '--json',
    );
    expect(exitCode).toBe(0);
    const { ok, exitCode: code, command, ...result } = json();
    expect({ ok, exitCode: code, command }).toEqual({ ok: true, exitCode: 0, command: 'convert' });
    const conversion = conversionSchema.parse(result);
    expect(conversion).toMatchObject({ precision: 'bf16', calibration: null });
    expect(conversion.kept.map(({ node, rule }) => [node, rule])).toEqual([
      ['encoder/exp', 'op-default'],
      ['decoder/product', 'keep-node'],
    ]);
  });

  it('runs where the configuration of all commands names a place that only a calibration needs', async () => {
    const config = join(folder, 'place.config.json');
    writeFileSync(config, JSON.stringify({ provider: 'cuda', device: 1, onnxruntime: 'absent.so' }));
    const { exitCode, json } = await convert(model, '-o', output, '--config', config, '--json');
    expect(exitCode).toBe(0);
    expect(json<ConversionResult>().calibration).toBeNull();
  });

  it('takes the names that AutoCast uses', async () => {
    const { json } = await convert(
      model,
      '-o',
      output,
      '--op_types_to_exclude',
      'MatMul,Add',
      '--op_types_to_include',
      'Exp',
      '--json',
    );
    expect(json<ConversionResult>().kept.map(({ rule }) => rule)).toEqual(['keep-op', 'keep-op']);
  });

  it.each([
    [[model], 'TF_USAGE', '--output'],
    [[model, '-o', output, '--precision', 'int2'], 'TF_USAGE', 'int2'],
    [[model, '-o', output, '--keep-nodes', '['], 'TF_USAGE', 'regular expression'],
    [[model, '-o', output, '--data-max', '512'], 'TF_USAGE', 'calibration'],
    [[model, '-o', model], 'TF_OUTPUT_IS_INPUT', 'net.onnx'],
    [[join(folder, 'absent.onnx'), '-o', output], 'TF_FILE_NOT_FOUND', 'absent.onnx'],
  ])('rejects %j with exit 2', async (words, code, names) => {
    const { exitCode, json } = await convert(...words, '--json');
    const { error } = json();
    expect(exitCode).toBe(2);
    expect(error?.code).toBe(code);
    expect(error?.message).toContain(names);
  });
});

describeWith('onnxruntime', 'trtforge convert --calibration', () => {
  it('keeps nodes FP32 around activations that went too far', async () => {
    const sample = join(folder, 'sample.npz');
    writeNpz(sample, new Map([['x', floats([2, 4], [1, 2, 3, 4, 5, 6, 7, 8])]]));
    const kept = async (...more: string[]) => {
      const calibrated = ['--calibration', sample, '--convert-ops', 'Exp', ...more, '--json'];
      return (await trtforge(['convert', model, '-o', output, ...calibrated])).json<ConversionResult>().kept;
    };
    expect((await kept()).map(({ node }) => node)).toEqual(['encoder/exp', 'decoder/product']);
    expect(await kept('--data-max', '1e9')).toEqual([]);
  });

  it('writes its ranges to a cache, reads them from it, and rejects those of other data', async () => {
    const g = new GraphBuilder('wide');
    g.input('x', 'float32', [1, 64]);
    g.initializer('w', tensorFrom('float32', [64, 64], new Float32Array(64 * 64).fill(1 / 64)));
    g.node('MatMul', { name: 'first', inputs: ['x', 'w'], outputs: ['h'] });
    g.node('MatMul', { name: 'last', inputs: ['h', 'w'], outputs: ['y'] });
    g.output('y', 'float32', [1, 64]);
    const wide = join(folder, 'wide.onnx');
    await writeModel(buildModel(g), wide);
    const saved = (name: string, top: number) => {
      const path = join(folder, name);
      writeNpz(path, new Map([['x', tensorFrom('float32', [1, 64], new Float32Array(64).fill(top))]]));
      return path;
    };
    const cache = join(folder, 'ranges.json');
    const int8 = async (sample: string, ...more: string[]) => {
      const words = ['--precision', 'int8', '--calibration', sample, '--calibration-cache', cache, ...more];
      const { exitCode, json } = await trtforge(['convert', wide, '-o', output, ...words, '--json']);
      return { exitCode, result: json<ConversionResult>(), error: json().error };
    };
    const sample = saved('eight.npz', 8);
    const first = await int8(sample);
    expect(first.exitCode).toBe(0);
    const made = { data: [sample], cache, preprocess: null, imgsz: null, provider: 'cpu' };
    expect(first.result.calibration).toEqual({ ...made, samples: 1 });
    expect(first.result.warnings).toEqual([expect.stringContaining('1 sample')]);
    expect(first.result.quantization?.activations).toMatchObject([
      { tensor: 'x', amax: expect.closeTo(8, 1) },
    ]);

    // Ranges that no run gives: they come out only where the file is read.
    const written = readFileSync(cache, 'utf8');
    const fromCache = ['--precision', 'int8', '--calibration-cache', cache, '--json'];
    const { json } = await trtforge(['convert', wide, '-o', output, ...fromCache]);
    expect(json<ConversionResult>()).toMatchObject({ quantization: { method: 'mse' }, warnings: [] });
    const content = JSON.parse(written);
    expect(content.ranges.x.amax).toBeCloseTo(8, 1);
    const otherwise = await trtforge([
      'convert',
      wide,
      '-o',
      output,
      ...fromCache,
      '--calibration-method',
      'max',
    ]);
    expect(otherwise.json().error).toMatchObject({ details: { differing: ['method'] } });
    content.ranges.x.amax = 6;
    writeFileSync(cache, JSON.stringify(content));
    const second = await int8(sample);
    expect(second.result.calibration).toEqual({ ...made, samples: 0 });
    expect(second.result.quantization?.activations).toMatchObject([
      { tensor: 'x', amax: expect.closeTo(6, 1) },
    ]);
    writeFileSync(cache, written);

    for (const [differing, run] of [
      ['data', int8(saved('nine.npz', 9))],
      ['method', int8(sample, '--calibration-method', 'entropy')],
    ] as const) {
      const { exitCode, error } = await run;
      expect(exitCode).not.toBe(0);
      expect(error).toMatchObject({
        code: 'TF_CALIBRATION_INVALID',
        details: { differing: expect.arrayContaining([differing]) },
      });
    }
    expect(readFileSync(cache, 'utf8')).toBe(written);
  });

  it.each(['int8', 'int4'])(
    'writes the same %s model when it finds the table that it wrote',
    async (type) => {
      const g = new GraphBuilder('wide');
      g.input('x', 'float32', [1, 64]);
      const values = Float32Array.from({ length: 64 * 64 }, (_, at) => Math.sin(at));
      g.initializer('w', tensorFrom('float32', [64, 64], values));
      g.initializer('b', tensorFrom('float32', [64], new Float32Array(64)));
      g.node('Gemm', { name: 'first', inputs: ['x', 'w', 'b'], outputs: ['h'] });
      g.node('Gemm', { name: 'last', inputs: ['h', 'w', 'b'], outputs: ['y'] });
      g.output('y', 'float32', [1, 64]);
      const wide = join(folder, 'gemm.onnx');
      await writeModel(buildModel(g), wide);
      const sample = join(folder, 'gemm.npz');
      const row = tensorFrom('float32', [1, 64], values.slice(0, 64));
      writeNpz(sample, new Map([['x', row]]));
      const table = join(folder, `${type}.cache`);
      const convert = async (...more: string[]) => {
        const words = ['--precision', type, '--calibration', sample, ...more];
        expect((await trtforge(['convert', wide, '-o', output, ...words])).exitCode).toBe(0);
        return readFileSync(output);
      };
      const kept = ['--calibration-cache', table];
      const [first, second] = [await convert(...kept), await convert(...kept)];
      expect(readFileSync(table, 'utf8')).toMatch(/^TRT-/);
      expect(second.equals(first)).toBe(true);
    },
  );

  it('is done by forge as well, and its command repeats it', async () => {
    const sample = join(folder, 'sample.npz');
    writeNpz(sample, new Map([['x', floats([2, 4], [1, 2, 3, 4, 5, 6, 7, 8])]]));
    const root = join(folder, 'run');
    const config = join(folder, 'trtforge.config.json');
    const keys = { calibration: [sample], 'convert-ops': ['Exp'], 'data-max': 1024 };
    writeFileSync(config, JSON.stringify({ forge: keys }));
    const words = ['--precision', 'fp16', '--config', config];
    const place = ['--skip', 'build,verify', '--run-root', root, '--json'];
    const { conversion, repeat } = (await trtforge(['forge', model, ...words, ...place])).json();
    expect(conversion).toMatchObject({ nodes: { converted: 1, kept: 2 } });
    expect(repeat).toContain(` --config ${config} `);
  });
});
