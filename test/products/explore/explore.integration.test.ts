import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attribute } from '../../../src/formats/onnx/index.js';
import { writeNpz } from '../../../src/formats/tensor/npz.js';
import { type Explored, exploreSchema } from '../../../src/products/explore/result.js';
import type { Advice } from '../../../src/products/study/advise/result.js';
import { modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { noise } from '../../formats/precision/judge.js';
import { describeWith } from '../../support/needs.js';
import { writeSample } from '../../support/sample-engine.js';
import { codeOfLine, trtforge } from '../../support/trtforge.js';

const fixtures = join(import.meta.dirname, '../../fixtures');
const layersOf = (version: string) => join(fixtures, 'engine-layers', `${version}-resnet50-fp16.json`);
const folder = mkdtempSync(join(tmpdir(), 'trtforge-explore-'));
const at = (...names: readonly string[]) => join(folder, ...names);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Three convolutions, a residual connection around the second, and a node without a name. */
const network = () =>
  modelFile((graph) => {
    const attributes = { pads: attribute.ints([1, 1, 1, 1]) };
    graph.input('x', 'float32', ['batch', 16, 8, 8]);
    for (const name of ['w1', 'w2', 'w3'])
      graph.initializer(name, noise([16, 16, 3, 3], 0.1, name.charCodeAt(1)));
    graph.node('Conv', { name: '/stem/Conv', inputs: ['x', 'w1'], outputs: ['a'], attributes });
    graph.node('Relu', { name: '/stem/Relu', inputs: ['a'], outputs: ['b'] });
    graph.node('Conv', { name: '/block/Conv', inputs: ['b', 'w2'], outputs: ['c'], attributes });
    graph.node('Add', { inputs: ['c', 'b'], outputs: ['d'] });
    graph.node('Conv', { name: '/head/Conv', inputs: ['d', 'w3'], outputs: ['y'], attributes });
    graph.output('y', 'float32', ['batch', 16, 8, 8]);
  });

let model: string;
beforeAll(async () => {
  model = await network();
  writeNpz(at('samples.npz'), new Map([['x', noise([8, 16, 8, 8], 1, 5)]]));
});

async function explored(...words: readonly string[]): Promise<Explored> {
  const { exitCode, json } = await trtforge(['explore', ...words, '--json']);
  expect(exitCode, JSON.stringify(json().error)).toBe(0);
  const { ok: _, exitCode: __, command: ___, ...result } = json();
  return exploreSchema.parse(result);
}

/** Runs a command line and keeps what it prints with --json. */
async function kept(name: string, ...words: readonly string[]): Promise<string> {
  const { out, exitCode } = await trtforge([...words, '--json']);
  expect(exitCode, out.slice(0, 1000)).toBe(0);
  writeFileSync(at(name), out);
  return at(name);
}

describe('a model', () => {
  test('has its nodes as rows, with FLOPs and bytes for the shapes that are passed', async () => {
    const open = await explored(model);
    expect(open.sides[0]!.notes.join()).toContain('batch');
    const { sides, operators } = await explored(model, '--shapes', 'x:2x16x8x8');
    const [side] = sides;
    expect(side!.rows.map(({ name }) => name)).toEqual([
      '/stem/Conv',
      '/stem/Relu',
      '/block/Conv',
      'node_of_d',
      '/head/Conv',
    ]);
    // 2 x 64 places x 16 channels of 16 x 3 x 3 products each, two operations a product.
    expect(side!.rows[0]).toMatchObject({
      bytes: 8192,
      weightBytes: 9216,
      precision: 'float32',
      onnx: ['/stem/Conv'],
    });
    expect(side!.rows[0]!.flops! / (2 * 2 * 64 * 16 * 144)).toBeCloseTo(1, 1);
    expect(side!.tensors[side!.rows[3]!.inputs[1]!]!.name).toBe('b');
    expect(operators.map(({ op, sides: [of] }) => [op, of!.layers])).toContainEqual(['Conv', 3]);
  });

  test('shows the error of compare layers and the sensitivity of convert advise at their nodes', async () => {
    const typed = at('typed.onnx');
    await trtforge(['convert', model, '--precision', 'fp16', '-o', typed]);
    const compared = await kept(
      'compared.json',
      'compare',
      'layers',
      typed,
      '--against',
      model,
      '--samples',
      '2',
    );
    const advised = await kept(
      'advised.json',
      ...[
        'convert',
        'advise',
        model,
        '--calibration',
        at('samples.npz'),
        '--budget',
        '10dB',
        '-o',
        at('advice'),
      ],
    );
    const { sides } = await explored(model, '--from', compared, '--from', advised);
    const byName = new Map(sides[0]!.rows.map((row) => [row.name, row]));
    for (const name of ['/stem/Conv', '/block/Conv', 'node_of_d', '/head/Conv'])
      expect(byName.get(name)!.error).toMatchObject({ outcome: 'pass', sqnrDb: expect.any(Number) });
    expect(byName.get('node_of_d')!.error!.tensor).toBe('d');
    const { units, ruledOut } = JSON.parse(readFileSync(advised, 'utf8')) as Advice;
    expect(units.length).toBeGreaterThan(0);
    for (const { nodes, why, alone } of units)
      expect(byName.get(nodes[0]!)).toMatchObject({
        sensitivityDb: alone.sqnrDb,
        why: `${nodes[0]}: ${why}`,
      });
    for (const { node, reason } of ruledOut)
      expect(byName.get(node)).toMatchObject({ sensitivityDb: null, why: `${node}: ${reason}` });
    expect(byName.get('/stem/Relu')!.sensitivityDb).toBeNull();
    const written = await explored(model, '--from', compared, '--as', 'model-explorer', '-o', at('overlay'));
    expect(written.written.map((file) => file.slice(at('overlay').length + 1)).sort()).toEqual([
      'error-db.json',
      'layer.json',
      'precision.json',
    ]);
    // A node without a name has the viewer's own: its place in the file.
    const data = JSON.parse(readFileSync(at('overlay', 'error-db.json'), 'utf8'));
    expect(Object.keys(data.test.results).sort()).toEqual([
      '/block/Conv',
      '/head/Conv',
      '/stem/Conv',
      '/stem/Relu',
      '<node_3>',
    ]);
  });
});

describe('recorded layers', () => {
  test.each(['8.6', '10.6'])('of %s make a page', async (version) => {
    const page = at(`${version}.html`);
    const { sides, written } = await explored(layersOf(version), '-o', page);
    expect(written).toEqual([page]);
    expect(sides[0]!.timing).toBeNull();
    const html = readFileSync(page, 'utf8');
    const [, policy = ''] = /Content-Security-Policy" content="([^"]*)"/.exec(html) ?? [];
    expect(policy.replaceAll('&#39;', "'").replace(/'sha256-[\w+/=]{44}'/g, 'DIGEST')).toBe(
      "default-src 'none'; script-src DIGEST; style-src DIGEST; img-src data:; base-uri 'none'; form-action 'none'",
    );
    const outside = [...html.matchAll(/<link[^>]+href="(?!data:)|\ssrc=|url\(/g)];
    expect(outside).toEqual([]);
  });

  test('of trtexec with its times as text', async () => {
    const { out, exitCode } = await trtforge([
      ...[
        'explore',
        layersOf('8.6'),
        layersOf('10.6'),
        '--from',
        join(fixtures, 'trtexec-runs/8.6-profile_b8.json'),
      ],
      ...['--from-b', join(fixtures, 'trtexec-runs/10.6-profile_b32.json')],
    ]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^Conv +53 +618 µs +53 +1\.1 ms +\+510 µs$/m);
    expect(out).toMatch(/^all +153 +861 µs +153 +1\.4 ms/m);
  });

  test('of a measurement alone, whose times are joined to the layers of a file by name', async () => {
    const { sides } = await explored(
      layersOf('8.6'),
      '--from',
      join(fixtures, 'trtexec-runs/8.6-profile_b8.json'),
    );
    const layers = sides[0]!.rows.map(({ name, type, precision, tactic, onnx, ms, share }, index) => ({
      ...{ index, name, type, precision, tactic, onnxNodes: onnx, ms: ms ?? 0, share: share ?? 0 },
    }));
    const bench = benchWith({ runs: 10, totalMs: sides[0]!.timing!.totalMs, layers });
    writeFileSync(at('bench.json'), JSON.stringify(bench));
    const alone = await explored(at('bench.json'));
    expect(alone.sides[0]).toMatchObject({ kind: 'bench', timing: { runs: 10, measuredMs: 0.8 } });
    const joined = await explored(layersOf('8.6'), '--from', at('bench.json'));
    expect(joined.sides[0]!.timing!.totalMs).toBeCloseTo(sides[0]!.timing!.totalMs, 9);
    writeFileSync(at('no-layers.json'), JSON.stringify({ ...bench, layers: null }));
    expect(await codeOfLine(['explore', layersOf('8.6'), '--from', at('no-layers.json')])).toBe('TF_USAGE');
  });
});

function benchWith(layers: object): object {
  const spread = { count: 10, min: 0.7, max: 1, mean: 0.8, median: 0.8, p90: 1, p95: 1, p99: 1 };
  const ms = { ...spread, coefficientOfVariation: null, interpolated: { p90: 1, p95: 1, p99: 1 } };
  const mode = { kind: 'gpu-only', graph: false, graphFallback: null, spinWait: false, streams: 1 };
  const figures = {
    ...{ gpuMs: ms, endToEndMs: null, qps: 1000, itemsPerSecond: 8000 },
    mode: { ...mode, warmUpMs: 1, durationMs: 1, iterations: 1, idleMs: 0 },
  };
  const run = {
    ...{ batch: 8, shapes: [{ name: 'data', shape: [8, 3, 224, 224] }], profile: 0, ...figures },
    ...{
      inputMs: null,
      outputMs: null,
      enqueueMs: null,
      wallMs: 10,
      warmUpInferences: 1,
      peakGpuBytes: null,
    },
    ...{ doubts: [], gpuStates: { before: null, during: [], after: null }, samples: null },
  };
  const subject = { path: 'm.engine', bytes: 1, name: null, identity: null, contextBytes: null };
  return {
    schema: 'trtforge.bench/1',
    subject: { ...subject, loadedBytes: null, loadMs: null, layers: null },
    ...{ backend: 'TensorRT 8.6.1', gpu: null, ...figures, runs: [run], layers, warnings: [] },
  };
}

describe('bad input is one sentence with exit code 2', () => {
  const bad = async (...words: readonly string[]) => {
    const { exitCode, json } = await trtforge(['explore', ...words, '--json']);
    expect(exitCode).toBe(2);
    expect(json().error!.message).not.toContain('\n');
    return json().error!.code;
  };

  test('a file of layers, a profile or a result that is cut short', async () => {
    const text = readFileSync(layersOf('10.6'), 'utf8');
    writeFileSync(at('cut.json'), text.slice(0, 5000));
    expect(await bad(at('cut.json'))).toBe('TF_LAYERS_INVALID');
    const profile = readFileSync(join(fixtures, 'trtexec-runs/8.6-profile_b8.json'), 'utf8');
    writeFileSync(at('cut-profile.json'), profile.slice(0, 900));
    expect(await bad(layersOf('8.6'), '--from', at('cut-profile.json'))).toBe('TF_TRTEXEC_EXPORT_INVALID');
    writeFileSync(at('cut-bench.json'), JSON.stringify(benchWith({})).slice(0, 300));
    expect(await bad(at('cut-bench.json'))).toBe('TF_REPORT_INVALID');
    writeFileSync(at('empty.json'), '');
    expect(await bad(at('empty.json'))).toBe('TF_LAYERS_INVALID');
  });

  test('an engine without layers', async () => {
    writeFileSync(at('none.json'), '{"Layers": [], "Bindings": []}');
    expect(await bad(at('none.json'))).toBe('TF_LAYERS_INVALID');
  });

  test('two without a common node', async () => {
    expect(await bad(model, layersOf('8.6'))).toBe('TF_USAGE');
  });

  test('files in the wrong place', async () => {
    const profile = join(fixtures, 'trtexec-runs/8.6-profile_b8.json');
    expect(await bad(join(fixtures, 'gate/parity-fp32.json'))).toBe('TF_USAGE');
    expect(await bad(at('missing.engine'))).toBe('TF_FILE_NOT_FOUND');
    expect(await bad(folder)).toBe('TF_FILE_NOT_FOUND');
    expect(await bad(layersOf('8.6'), '--as', 'model-explorer', '-o', at('x'))).toBe('TF_USAGE');
    expect(await bad(model, '--as', 'model-explorer')).toBe('TF_USAGE');
    writeFileSync(at('other.json'), '{"other":1}');
    const overFile = ['explore', model, '--as', 'model-explorer', '-o', at('other.json')];
    expect(await codeOfLine(overFile)).toBe('TF_WRITE_FAILED');
    expect(await bad(model, '--from', at('other.json'))).toBe('TF_LAYERS_INVALID');
    expect(await bad(model, '--from', layersOf('8.6'))).toBe('TF_USAGE');
    expect(await bad(profile)).toBe('TF_USAGE');
    expect(existsSync(at('x'))).toBe(false);
  });

  test('an engine without a program needs its GPU or a file of its layers', async () => {
    const engine = writeSample(folder);
    expect(await codeOfLine(['explore', engine])).toBe('TF_GPU_UNAVAILABLE');
    const { sides } = await explored(engine, '--from', layersOf('10.6'));
    expect(sides[0]).toMatchObject({ kind: 'layers', file: engine });
  });
});

describeWith('toolchain', 'an engine of TensorRT-RTX, without a GPU', () => {
  const engineIn = (root: string) =>
    readdirSync(join(root, 'engines'))
      .filter((name) => name.endsWith('.engine'))
      .map((name) => join(root, 'engines', name))[0]!;

  test('shows the kernels of its program, beside the model and another precision', async () => {
    for (const precision of ['fp16', 'as-is'])
      await trtforge([
        ...['forge', model, '--precision', precision, '--batch', '4', '--target', 'tensorrt-rtx:sm_89'],
        ...['--run-root', at(precision), '--no-cache'],
      ]);
    const run = await explored(at('fp16'), at('as-is'), '-o', at('pair.html'));
    const [fp16, fp32] = run.sides;
    expect([fp16!.kind, fp32!.kind]).toEqual(['program', 'program']);
    const conv = fp16!.rows.find(({ onnx }) => onnx.includes('/block/Conv'))!;
    expect(conv).toMatchObject({ precision: 'float16', operator: 'Conv' });
    expect(conv.flops! / (2 * 4 * 64 * 16 * 144)).toBeCloseTo(1, 1);
    expect(conv.why).toContain('float16');
    const pairs = run.comparison!.groups.filter(({ a, b }) => a.length > 0 && b.length > 0);
    const changed = pairs.find(({ a }) => fp16!.rows[a[0]!]!.onnx.includes('/block/Conv'))!;
    expect(['changed', 'fused']).toContain(changed.change);
    const engine = engineIn(at('fp16'));
    const beside = await explored(join(at('fp16'), 'model', readdirSync(at('fp16', 'model'))[0]!), engine);
    expect(beside.comparison!.groups.some(({ change }) => change === 'fused')).toBe(true);
    expect(beside.sides[1]!.kind).toBe('program');
  });
});
