import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { shellWords } from '../../../src/cli/migrate/line.js';
import { attribute, buildModel, GraphBuilder, type ModelSpec } from '../../../src/formats/onnx/builder.js';
import { inspectModel } from '../../../src/formats/onnx/inspect.js';
import type { ModelFacts } from '../../../src/formats/onnx/model-facts.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { floatTensor, tensorFrom } from '../../../src/formats/tensor/tensor.js';
import type { ExplainResult } from '../../../src/quality/explain/explain.js';
import { samplePlan } from '../../support/sample-engine.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge cures '));
afterAll(() => rmSync(folder, { recursive: true }));

const floats = (...shape: readonly number[]) =>
  floatTensor(
    'float32',
    shape,
    Float32Array.from({ length: shape.reduce((all, size) => all * size, 1) }, (_, at) => Math.sin(at)),
  );
const sizes = (...values: readonly number[]) =>
  tensorFrom('int64', [values.length], BigInt64Array.from(values.map(BigInt)));

type Draw = (graph: GraphBuilder) => void;
async function written(name: string, draw: Draw, spec: ModelSpec = {}): Promise<string> {
  const path = join(folder, `${name}.onnx`);
  const graph = new GraphBuilder(name);
  draw(graph);
  await writeModel(buildModel(graph, spec), path);
  return path;
}

/** Runs the only line in backticks that begins like this; returns the file that it writes. */
async function runPrinted(text: string, verb: string): Promise<string> {
  const lines = [...text.matchAll(/`(trtforge [^`]+)`/g)].flatMap(([, line = '']) =>
    line.startsWith(`trtforge ${verb} `) ? [line] : [],
  );
  expect(lines).toHaveLength(1);
  const args = shellWords(lines[0]!).slice(1);
  const { exitCode, err } = await trtforge(args);
  expect(exitCode, err).toBe(0);
  return args[args.indexOf('-o') + 1] ?? '';
}

const product: Draw = (graph) => {
  graph.input('x', 'float32', ['batch', 16]);
  graph.initializer('w', floats(16, 16));
  graph.node('MatMul', { inputs: ['x', 'w'], outputs: ['h'] });
  graph.node('Relu', { inputs: ['h'], outputs: ['y'] });
  graph.output('y', 'float32', ['batch', 16]);
};

describe('the line that inspect prints of a finding', () => {
  test.each<{ code: string; name: string; draw: Draw; spec?: ModelSpec }>([
    {
      code: 'size-fixed',
      name: 'a token that the exporter stretched',
      draw: (graph) => {
        graph.input('x', 'float32', ['batch', 20, 32]);
        graph.initializer('sh', sizes(8, 1, 32));
        graph.node('ConstantOfShape', { inputs: ['sh'], outputs: ['token'] });
        graph.node('Concat', {
          inputs: ['token', 'x'],
          outputs: ['y'],
          attributes: { axis: attribute.int(1) },
        });
        graph.output('y', 'float32', ['batch', 21, 32]);
      },
    },
    {
      code: 'size-fixed',
      name: 'queries that were tiled, of an axis without a name',
      draw: (graph) => {
        graph.input('x', 'float32', [null, 4, 8]);
        graph.initializer('q', floats(1, 4, 8));
        graph.initializer('repeats', sizes(6, 1, 1));
        graph.node('Tile', { inputs: ['q', 'repeats'], outputs: ['tiled'] });
        graph.node('Add', { inputs: ['x', 'tiled'], outputs: ['y'] });
        graph.output('y', 'float32', [null, 4, 8]);
      },
    },
    {
      code: 'dim-without-symbol',
      name: 'axes without a name',
      draw: (graph) => {
        graph.input('x:0', 'float32', [null, 4]);
        graph.input('z', 'float32', ['?', '?']);
        graph.node('Relu', { inputs: ['x:0'], outputs: ['y'] });
        graph.node('Neg', { inputs: ['z'], outputs: ['u'] });
        graph.output('y', 'float32', null);
        graph.output('u', 'float32', null);
      },
    },
    ...(['float64', 'float32'] as const).map((dtype) => ({
      code: dtype === 'float64' ? 'io-type-unsupported' : 'float64-narrowed',
      name: `doubles behind an input of ${dtype}`,
      draw: (graph: GraphBuilder) => {
        graph.input('x', dtype, ['batch', 4]);
        graph.node('Cast', { inputs: ['x'], outputs: ['d'], attributes: { to: attribute.int(11) } });
        graph.initializer('w', tensorFrom('float64', [4], Float64Array.of(0.1, 1 / 3, 1e300, -2)));
        graph.node('Add', { inputs: ['d', 'w'], outputs: ['h'] });
        graph.node('Tanh', { inputs: ['h'], outputs: ['t'] });
        graph.node('CastLike', { inputs: ['t', 'x'], outputs: ['y'] });
        graph.output('y', dtype, ['batch', 4]);
      },
    })),
    { code: 'ir-too-new', name: 'an IR of the future', draw: product, spec: { irVersion: 14 } },
    {
      code: 'opset-too-new',
      name: 'an opset of the future',
      draw: product,
      spec: { opset: 25, irVersion: 13 },
    },
    {
      code: 'initializer-unused',
      name: 'weights that nothing reads',
      draw: (graph) => {
        product(graph);
        graph.initializer('left', floats(3));
      },
    },
  ])('$code: $name', async ({ code, name, draw, spec }) => {
    const path = await written(name, draw, spec);
    const { findings } = await inspectModel(path);
    const found = findings.filter((finding) => finding.code === code);
    expect(found.length).toBeGreaterThan(0);
    expect(new Set(found.map(({ remedy }) => remedy)).size).toBe(1);
    const { out } = await trtforge(['inspect', path]);
    expect(out).toContain(found[0]!.remedy);
    const after = await inspectModel(await runPrinted(found[0]!.remedy!, 'edit'));
    expect(after.findings.map((finding) => finding.code)).not.toContain(code);
  });

  test('op-engine: a wrapped engine is shown', async () => {
    const path = await written(
      'context',
      (graph) => {
        graph.input('x', 'float32', ['n', 2]);
        graph.node('EPContext', {
          domain: 'com.microsoft',
          inputs: ['x'],
          outputs: ['y'],
          attributes: {
            main_context: attribute.int(1),
            embed_mode: attribute.int(1),
            ep_cache_context: () => ({ type: 3, s: samplePlan() }),
          },
        });
        graph.output('y', 'float32', ['n', 2]);
      },
      { opsets: { 'com.microsoft': 1 } },
    );
    const { out } = await trtforge(['inspect', path]);
    await runPrinted(out, 'engine inspect');
  });

  test('an opset that is too new for a target is lowered to one that it knows', async () => {
    const path = await written('target', product, { opset: 21 });
    const target = ['--target', 'tensorrt@10.3.0.26:sm_87'];
    const before = (await trtforge(['inspect', path, ...target, '--json'])).json<ModelFacts>();
    const [found] = before.findings.filter(({ code }) => code === 'target-unsupported');
    const edited = await runPrinted(found!.remedy!, 'edit');
    const after = (await trtforge(['inspect', edited, ...target, '--json'])).json<ModelFacts>();
    expect(after.findings).toEqual([]);
  });

  test('is not printed where an operator is another one in the older opset', async () => {
    const path = await written(
      'attention',
      (graph) => {
        graph.input('x', 'float32', ['batch', 4]);
        graph.node('Cast', { inputs: ['x'], outputs: ['h'], attributes: { to: attribute.int(7) } });
        graph.node('Swish', { inputs: ['x'], outputs: ['y'] });
        graph.output('y', 'float32', ['batch', 4]);
        graph.output('h', 'int64', ['batch', 4]);
      },
      { opset: 25, irVersion: 13 },
    );
    const { findings } = await inspectModel(path);
    const [found] = findings.filter(({ code }) => code === 'opset-too-new');
    expect(found).toBeDefined();
    expect(found!.remedy).toBeUndefined();
  });
});

describe('the line that explain prints of a known issue', () => {
  test.each([
    {
      id: 'no-implementation-foreign-node',
      line: '[E] Error[10]: Could not find any implementation for node {ForeignNode[/h.../y]}.',
      inputs: [[1, 16]],
    },
    {
      id: 'input-not-constant',
      line: '[E] Resize: the parser only supports input scales as an initializer',
      inputs: [['batch', 16]],
    },
    {
      id: 'ir-version-too-new',
      line: 'Unsupported model IR version: 14, max supported IR version: 13',
      inputs: [['batch', 16]],
      irVersion: 13,
    },
  ])('$id', async ({ id, line, inputs, irVersion = 8 }) => {
    const path = await written(id, product, irVersion === 8 ? {} : { irVersion: 14 });
    const log = join(folder, `${id}.log`);
    writeFileSync(log, `${line}\n`);
    const explained = await trtforge(['explain', log, '--model', path, '--json']);
    const { issues } = explained.json<ExplainResult>();
    const issue = issues.find((each) => each.id === id);
    const after = await inspectModel(await runPrinted(issue!.remedy, 'edit'));
    expect(after.inputs.map(({ shape }) => shape)).toEqual(inputs);
    expect(after.irVersion).toBe(irVersion);
  });
});
