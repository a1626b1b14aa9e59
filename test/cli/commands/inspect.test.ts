import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CommandResult, TextOutput } from '../../../src/cli/command.js';
import { command } from '../../../src/cli/commands/inspect.js';
import type { LayersResult } from '../../../src/engines/layers/result-schema.js';
import type { WorkEvent } from '../../../src/events.js';
import { buildModel, type Dimension, GraphBuilder, writeModel } from '../../../src/formats/onnx/index.js';
import { mutations } from '../../support/mutations.js';
import { plainColors } from '../../support/plain-colors.js';
import { samplePassport, samplePlan } from '../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-inspect-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const model = join(folder, 'net.onnx');

async function writeNet(path: string, shape: readonly Dimension[], opset = 17): Promise<void> {
  const graph = new GraphBuilder('net');
  graph.input('weight', 'float32', [8, 3, 1, 1]);
  graph.input('image', 'float32', shape);
  graph.initializer('weight', {
    dtype: 'float32',
    shape: [8, 3, 1, 1],
    *chunks() {
      yield new Uint8Array(new Float32Array(24).fill(1e6).buffer);
    },
  });
  graph.node('Conv', { inputs: ['image', 'weight'], outputs: ['features'], name: 'conv' });
  graph.node('Relu', { inputs: ['features'], outputs: ['scores'], name: 'relu' });
  graph.output('scores', 'float32', ['batch', 8, null, null]);
  // The ONNX domain is not the first one imported, as some exporters do.
  const built = buildModel(graph, { opset, producer: 'tests' });
  built.proto.opsetImport.unshift({ $typeName: 'onnx.OperatorSetIdProto', domain: 'com.acme', version: 3n });
  await writeModel(built, path);
}

beforeAll(() => writeNet(model, ['batch', 3, 224, 320]));

async function inspect(
  file: string,
  options: Record<string, unknown> = {},
  emit: (event: WorkEvent) => void = () => {},
) {
  const context = { emit, signal: new AbortController().signal, environment: {} };
  return command.run(
    [file],
    { format: 'text', checkWeights: false, plugin: [], ...options } as never,
    context,
  );
}

function textOf(result: CommandResult): string {
  const lines: string[] = [];
  command.render(result, { line: (text = '') => lines.push(text), colors: plainColors } satisfies TextOutput);
  return lines.join('\n');
}

/** What the scripts that read the summary grep for. */
const grepped = (text: string) => ({
  input: /input_name:\s*(\S+)/.exec(text)?.[1],
  height: /height:\s*([0-9]+)/.exec(text)?.[1],
  width: /width:\s*([0-9]+)/.exec(text)?.[1],
});

describe('inspect of a model', () => {
  it('shows what goes in and out, sizes, operators and findings', async () => {
    expect(textOf(await inspect(model))).toBe(
      [
        `${model}  ONNX IR 8 · opset 17 · com.acme 3 · tests · 429 B`,
        '',
        'Inputs     image  float32  batch × 3 × 224 × 320',
        'Outputs    scores  float32  batch × 8 × ? × ?',
        'Nodes      2',
        '           Conv 1 · Relu 1',
        'Weights    24 parameters  1 tensor  96 B  float32',
        '',
        '· note initializer-is-input  The initializer «weight» is also listed as an input, so runtimes may not treat it as a constant.',
        '    at graph',
      ]
        .join('\n')
        .replace('429 B', `${readFileSync(model).length} B`),
    );
  });

  it('adds what the weights hold when asked to read them', async () => {
    const result = await inspect(model, { checkWeights: true });
    expect(result).toMatchObject({
      schema: 'trtforge.inspect/1',
      findings: [{ code: 'initializer-is-input' }, { code: 'weights-fp16-overflow' }],
    });
  });

  it.each([
    [['batch', 3, 224, 320], { input: 'image', height: '224', width: '320' }],
    [['batch', 3, 'h', 'w'], { input: 'image', height: undefined, width: undefined }],
    [['batch', 3, 224, null], { input: 'image', height: '224', width: undefined }],
    [['N', 480, 640, 3], { input: 'image', height: '480', width: '640' }],
    [['N', 3, 640, 3], { input: 'image', height: '640', width: '3' }],
    [['N', 3, 4, 480, 640], { input: 'image', height: undefined, width: undefined }],
    [['batch', 80], { input: 'image', height: undefined, width: undefined }],
  ] as const)('prints the DeepStream summary so that its greps work: %j', async (shape, expected) => {
    const path = join(folder, `${shape.join('_')}.onnx`);
    await writeNet(path, shape);
    const text = textOf(await inspect(path, { format: 'deepstream' }));
    expect(grepped(text)).toEqual(expected);
    expect(text).toMatch(
      /^=== ONNX Model Info ===\nFile: .*\nOpset:\s+17\nIR ver:\s+8\nProducer: tests\nNodes:\s+2\n/,
    );
    expect(text).toContain('✓ ONNX model is valid');
  });

  it('prints dynamic sizes as the scripts expect them', async () => {
    const path = join(folder, 'dynamic.onnx');
    await writeNet(path, ['batch', 3, 'rows', null]);
    const text = textOf(await inspect(path, { format: 'deepstream' }));
    expect(text).toContain("  image: shape=['batch', 3, 'rows', ''], dtype=float32");
    expect(text).toContain(
      'height: DYNAMIC (symbol=rows)\nwidth: DYNAMIC (symbol=unknown)\nWARNING: Dynamic H/W',
    );
  });
});

describe('inspect of a plan', () => {
  const plan = Buffer.alloc(1000);
  plan.write('vtrt');
  plan.writeBigUInt64LE(1000n, 16);
  plan.set([1, 7, 1, 116], 24);
  const json = Buffer.from(JSON.stringify({ author: 'Ultralytics' }));
  const headed = Buffer.concat([Buffer.from([json.length, 0, 0, 0]), json, plan]);

  it('shows product, version, size, digest and what stands before it, and strips that', async () => {
    const file = join(folder, 'yolo.engine');
    writeFileSync(file, headed);
    const out = join(folder, 'yolo.plan');
    const result = await inspect(file, { stripHeader: out });
    expect(result).toMatchObject({ schema: 'trtforge.inspect-plan/1', version: '1.7.1.116', passport: null });
    expect(textOf(result)).toContain('Built by   TensorRT-RTX 1.7.1.116');
    expect(textOf(result)).toContain(`Written    ${out}`);
    expect(readFileSync(out).equals(plan)).toBe(true);
  });

  it('reports a passport that is not one', async () => {
    const file = join(folder, 'with-passport.engine');
    writeFileSync(file, plan);
    writeFileSync(`${file}.passport.json`, '{"schema": "something else"}');
    expect(await inspect(file)).toMatchObject({ passport: null, findings: [{ code: 'passport-invalid' }] });
  });

  it('refuses options that are for models, and the other way round', async () => {
    const file = join(folder, 'plain.engine');
    writeFileSync(file, plan);
    for (const options of [{ format: 'deepstream' }, { checkWeights: true }]) {
      await expect(inspect(file, options)).rejects.toMatchObject({ code: 'TF_USAGE' });
    }
    await expect(inspect(model, { stripHeader: 'out' })).rejects.toMatchObject({ code: 'TF_USAGE' });
  });
});

describe('the command line', () => {
  const main = new URL('../../../dist/main.js', import.meta.url).pathname;
  const trtforge = (...args: string[]) =>
    spawnSync(process.execPath, [main, 'inspect', ...args], { encoding: 'utf8' });

  it('prints exactly one JSON object', () => {
    const { status, stdout, stderr } = trtforge(model, '--json');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({
      schema: 'trtforge.inspect/1',
      ok: true,
      file: model,
      inputs: [{ name: 'image' }],
    });
  });

  it('ends with exit code 2 and the reason for a file that is no model', () => {
    const { status, stdout } = trtforge(join(folder, 'nowhere.onnx'), '--json');
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: 'TF_FILE_NOT_FOUND' } });
  });
});

describe('inspect of an engine’s layers', () => {
  const layers = (name: string) =>
    fileURLToPath(new URL(`../../fixtures/engine-layers/${name}.json`, import.meta.url));
  const [old, recent] = [layers('8.6-resnet50-fp16'), layers('10.6-resnet50-fp16')];

  it('lists layers, sums and copies from an exported file', async () => {
    const result = await inspect(recent);
    expect(result).toMatchObject({ schema: 'trtforge.engine-layers/1', kind: 'layers', loaded: null });
    const lines = textOf(result).split('\n');
    expect(lines[0]).toBe(`${recent}  153 layers`);
    expect(lines.find((line) => line.startsWith('/conv1/Conv + /relu/Relu'))).toMatch(
      /CaskConvolution +float16 +32×64×112×112 +sm90_xmma_fprop_image_\S+ +2$/,
    );
    expect(textOf(result)).toMatch(/Weights +48\.7 MiB\n/);
    expect(textOf(result)).toMatch(/47 layers copy the same weights again in every run/);
  });

  it('compares two, also where one is what --json printed on another machine', async () => {
    const saved = join(folder, 'saved.json');
    const printed = { ...(await inspect(old)), ok: true, command: 'inspect', exitCode: 0 };
    writeFileSync(saved, JSON.stringify(printed));
    const result = await inspect(saved, { against: recent });
    expect(result).toMatchObject({
      schema: 'trtforge.engine-diff/1',
      a: { file: old, layersFrom: saved },
      b: { file: recent },
      matched: 56,
    });
    const text = textOf(result);
    expect(text).toMatch(/copies +49 +48 +0\.98/);
    expect(text).toMatch(/56 layers of the same ONNX nodes: 2 alike, 54 changed/);
    expect(text).toMatch(/tactic +sm80_xmma_gemm\S* → sm90_xmma_gemm/);
  });

  it('takes the size from the engine whose layers a file has', async () => {
    const plan = Buffer.alloc(64);
    plan.write('ftrt', 0, 'latin1');
    plan.writeBigUInt64LE(64n, 16);
    plan.set([10, 6, 0, 26], 24);
    const path = join(folder, 'model.engine');
    writeFileSync(path, plan);
    expect(await inspect(path, { layersFrom: recent })).toMatchObject({ file: path, planBytes: 64 });
  });

  it('holds a file of layers against the engine it is given for, and says where nothing tells', async () => {
    const path = join(folder, 'small.engine');
    const plan = samplePlan();
    writeFileSync(path, plan);
    const unchecked = await inspect(path, { layersFrom: recent });
    expect(textOf(unchecked)).toMatch(/· note layers-unchecked {2}Nothing shows whether .*has no passport/);
    const said: string[] = [];
    await inspect(path, { layersFrom: recent, against: old }, (event) =>
      said.push(event.type === 'log' ? event.message : event.type),
    );
    expect(said).toEqual([expect.stringMatching(/^Nothing shows whether/)]);
    const passport = samplePassport(plan);
    const withTensors = (input: string) => {
      const inputs = [{ name: input, dtype: 'float32', shape: [null, 3, 224, 224] }];
      const outputs = [{ name: 'logits', dtype: 'float32', shape: [null, 1000] }];
      return JSON.stringify({ ...passport, plan: { ...passport.plan, inputs, outputs } });
    };
    writeFileSync(`${path}.passport.json`, withTensors('data'));
    for (const exported of [recent, old]) {
      const { findings } = (await inspect(path, { layersFrom: exported })) as LayersResult;
      expect(findings.filter(({ code }) => code.startsWith('layers-'))).toEqual([]);
    }
    writeFileSync(`${path}.passport.json`, withTensors('image'));
    for (const exported of [recent, old]) {
      await expect(inspect(path, { layersFrom: exported })).rejects.toMatchObject({
        code: 'TF_LAYERS_MISMATCH',
        message: expect.stringMatching(/they bind data, .*they lack its image\.$/),
      });
    }
  });

  it('damaged files of layers, of either dialect or our own, are shown and compared or refused', async () => {
    const { Layers, Bindings } = JSON.parse(readFileSync(recent, 'utf8')) as Record<string, unknown[]>;
    const tensors = [
      { Name: 'data', IOMode: 'Input', DataType: 'Half', Dimensions: [-1, 3, 224, 224], ProfileInfo: [] },
      { Name: 'logits', IOMode: 'Output', DataType: 'Float', Dimensions: [-1, 1000] },
    ];
    const some = Layers?.slice(2, 10);
    const [whole, damaged] = [join(folder, 'whole.json'), join(folder, 'damaged.json')];
    writeFileSync(whole, JSON.stringify({ Layers: some, Bindings }));
    const originals = [
      readFileSync(whole, 'utf8'),
      JSON.stringify({ Layers: some, 'I/O Tensors': tensors }),
      JSON.stringify(await inspect(whole)),
    ];
    let refused = 0;
    for (const original of originals)
      for (const bytes of mutations(Buffer.from(original), 150, 5)) {
        writeFileSync(damaged, bytes);
        try {
          textOf(await inspect(damaged));
          textOf(await inspect(whole, { against: damaged }));
        } catch (error) {
          expect(error).toMatchObject({ code: 'TF_LAYERS_INVALID' });
          refused++;
        }
      }
    expect(refused).toBeGreaterThan(50);
    expect(refused).toBeLessThan(440);
  });

  it.each<[string, () => readonly [string, Record<string, unknown>], string, RegExp]>([
    ['a model', () => [model, { layers: true }], 'TF_USAGE', /is no engine/],
    ['a JSON of something else', () => [join(folder, 'other.json'), {}], 'TF_LAYERS_INVALID', /«Layers»/],
    [
      'a result of ours that was changed',
      () => [join(folder, 'broken.json'), {}],
      'TF_LAYERS_INVALID',
      /kind/,
    ],
    ['layers for a file of layers', () => [recent, { layersFrom: old }], 'TF_USAGE', /goes with an engine/],
    ['two views at once', () => [recent, { checkWeights: true }], 'TF_USAGE', /other views/],
  ])('%s is refused', async (_what, given, code, message) => {
    writeFileSync(join(folder, 'other.json'), '{"models": []}');
    writeFileSync(join(folder, 'broken.json'), '{"schema": "trtforge.engine-layers/1", "kind": 7}');
    const [file, options] = given();
    await expect(inspect(file, options)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });
});
