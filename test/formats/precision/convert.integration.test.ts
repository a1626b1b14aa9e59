import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openOrtSession } from '../../../src/engines/runtime/onnxruntime/ort-session.js';
import { TrtforgeError } from '../../../src/errors.js';
import type { WorkEvent } from '../../../src/events.js';
import {
  attribute as a,
  buildModel,
  GraphBuilder,
  type ModelSpec,
} from '../../../src/formats/onnx/builder.js';
import { inferDtypes } from '../../../src/formats/onnx/dtype-inference.js';
import { inOrder } from '../../../src/formats/onnx/graph.js';
import { openModel } from '../../../src/formats/onnx/model.js';
import { declaredType } from '../../../src/formats/onnx/values.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { convertModel } from '../../../src/formats/precision/convert.js';
import { mutations } from '../../support/mutations.js';
import {
  converted,
  difference,
  floats,
  freshPath,
  integers,
  noise,
  observedBy,
  run,
  written,
} from './judge.js';
import { traps } from './models.js';

function layers(count: number, width = 64): GraphBuilder {
  const g = new GraphBuilder('layers');
  let value = g.input('x', 'float32', ['n', width]);
  for (let index = 0; index < count; index++) {
    g.initializer(`w${index}`, noise([width, width], 0.1, index + 1));
    value = g.node('MatMul', { name: `layer${index}`, inputs: [value, `w${index}`], outputs: [`h${index}`] });
  }
  g.output(value, 'float32', ['n', width]);
  return g;
}

const feeds = { x: noise([2, 64], 1, 3) };

describe('files', () => {
  it.each([
    ['never', 'never'],
    ['never', 'always'],
    ['always', 'never'],
    ['always', 'always'],
  ] as const)('weights inside or beside (in: %s, out: %s) give the same model', async (before, after) => {
    const input = freshPath();
    await writeModel(buildModel(layers(3)), input, { externalData: before });
    const { output, result } = await converted(input, { externalData: after });
    expect(result.externalData).toBe(after === 'always' ? `${output}.data` : null);
    const files = [output, `${output}.data`].filter((path) => existsSync(path));
    expect(result.bytes.after).toBe(files.reduce((sum, path) => sum + statSync(path).size, 0));
    expect(difference(await run(input, feeds), await run(output, feeds))).toBeLessThan(5e-3);
    const weights = output.endsWith('.onnx') ? openModel(output) : undefined;
    const [first] = weights?.proto.graph?.initializer ?? [];
    const bytes =
      first === undefined ? [] : [...(weights?.weight(first).chunks() ?? [])].map((chunk) => chunk.length);
    weights?.close();
    expect(bytes).toEqual([64 * 64 * 2]);
  });

  it('are not written over the model that is read', async () => {
    const input = await written(layers(2));
    const before = readFileSync(input);
    await expect(convertModel(input, input, { precision: 'fp16' })).rejects.toMatchObject({
      code: 'TF_OUTPUT_IS_INPUT',
    });
    expect(readFileSync(input).equals(before)).toBe(true);
  });

  it('do not appear when the work is cancelled', async () => {
    const input = await written(layers(40));
    const output = freshPath();
    const stop = new AbortController();
    const emit = (event: WorkEvent) => {
      if (event.type === 'progress') stop.abort();
    };
    await expect(
      convertModel(input, output, { precision: 'fp16' }, { emit, signal: stop.signal }),
    ).rejects.toMatchObject({ code: 'TF_CANCELLED' });
    expect(readdirSync(dirname(output)).filter((name) => name.includes(basename(output)))).toEqual([]);
  });

  it('that are missing are named', async () => {
    await expect(convertModel('/no/such.onnx', freshPath(), { precision: 'fp16' })).rejects.toMatchObject({
      code: 'TF_FILE_NOT_FOUND',
    });
  });
});

describe('the account', () => {
  it('adds up', async () => {
    const { result } = await converted(await written(layers(5)), { keepNodes: [/^layer3$/] });
    expect(result.nodes).toEqual({ total: 5, converted: 4, kept: 1, untouched: 0 });
    expect(result.convertedOps).toEqual({ MatMul: 4 });
    expect(result.rules).toEqual([{ id: 'keep-node', title: 'Named by --keep-nodes', nodes: 1 }]);
    expect(result.weights).toMatchObject({ converted: 4, keptFp32: 1, saturated: 0 });
    expect(result.casts).toEqual({ added: 4, removed: 0 });
    expect(result.bytes.after).toBeLessThan(result.bytes.before * 0.65);
    expect(result.inputs).toEqual([{ name: 'x', before: 'float32', after: 'float32' }]);
  });

  it('reports what I/O became', async () => {
    const { result } = await converted(await written(layers(1)), {
      ioTypes: 'convert',
      precision: 'bf16',
    });
    expect(result.inputs).toEqual([{ name: 'x', before: 'float32', after: 'bfloat16' }]);
    expect(result.outputs).toEqual([{ name: 'h0', before: 'float32', after: 'bfloat16' }]);
  });

  it('warns of a pattern of nodes to keep that no node fits', async () => {
    const { result } = await converted(await written(layers(2)), { keepNodes: [/^layer1$/, /decoder/] });
    expect(result.warnings).toEqual(['`--keep-nodes /decoder/` matched no node.']);
  });
});

describe('an original that is not well typed is rejected, with nothing written', () => {
  const half = { dtype: 'float16', shape: [64], bytes: new Uint8Array(128) } as const;
  const cases: readonly [what: string, (g: GraphBuilder) => void][] = [
    ['two types for one operator', (g) => g.node('Add', { inputs: ['h0', 'half'], outputs: ['z'] })],
    ['a type that an operator does not take', (g) => g.node('Conv', { inputs: ['i', 'i'], outputs: ['z'] })],
    [
      'a declaration that says otherwise',
      (g) => {
        g.node('Relu', { inputs: ['h0'], outputs: ['z'] });
        g.output('z', 'int64', null);
      },
    ],
    [
      'a cycle',
      (g) => {
        g.node('Relu', { inputs: ['z'], outputs: ['q'] });
        g.node('Relu', { inputs: ['q'], outputs: ['z'] });
      },
    ],
  ];

  it.each(cases)('%s', async (_, build) => {
    const g = layers(1);
    g.initializer('half', half);
    g.initializer('i', { dtype: 'int8', shape: [1, 1, 1, 1], bytes: new Uint8Array(1) });
    build(g);
    const output = freshPath();
    await expect(convertModel(await written(g), output, { precision: 'fp16' })).rejects.toMatchObject({
      code: 'TF_ONNX_GRAPH_INVALID',
    });
    expect(existsSync(output)).toBe(false);
  });
});

it('a calibration runs on the model, once', async () => {
  const input = await written(layers(1));
  const runs: unknown[] = [];
  const observe = async (...run: readonly unknown[]) => {
    runs.push(run[0]);
    return new Map();
  };
  await convertModel(input, freshPath(), { precision: 'fp16', calibration: observedBy(observe) });
  expect(runs).toEqual([input]);
});

describe.each(['fp16', 'bf16'] as const)('converted to %s is well typed', (precision) => {
  const low = precision === 'fp16' ? 'float16' : 'bfloat16';
  const opset = precision === 'fp16' ? 17 : 22;
  const wellTyped = async (g: GraphBuilder, spec: ModelSpec = {}) => {
    const model = await converted(await written(g, { opset, ...spec }), { precision });
    expect(inferDtypes(model.model.proto).violations).toEqual([]);
    return model;
  };

  it('what is declared and not read', async () => {
    const g = layers(1);
    g.node('Sigmoid', { inputs: ['h0'], outputs: ['dead'] });
    g.value('dead', 'float32', ['n', 64]);
    g.initializer('k', integers([1], [2]));
    g.node('TopK', { inputs: ['h0', 'k'], outputs: ['values', 'indices'] });
    g.value('values', 'float32', ['n', 2]);
    g.output('indices', 'int64', ['n', 2]);
    const yes = new GraphBuilder('yes');
    yes.node('Split', {
      inputs: ['h0'],
      outputs: ['left', 'right'],
      attributes: { axis: a.int(1), num_outputs: a.int(2) },
    });
    yes.value('right', 'float32', ['n', 32]);
    yes.output('left', 'float32', ['n', 32]);
    g.input('flag', 'bool', []);
    g.node('If', {
      inputs: ['flag'],
      outputs: ['branch'],
      attributes: { then_branch: a.body(yes), else_branch: a.body(yes) },
    });
    g.value('branch', 'float32', ['n', 32]);
    const { declared } = await wellTyped(g, { opset: Math.max(18, opset) });
    // BF16 comes to TopK with opset 24, beyond what the conversion raises to.
    const topK = precision === 'fp16' ? low : 'float32';
    expect([declared('dead'), declared('values'), declared('branch')]).toEqual([low, topK, low]);
  });

  it('a body that declares a value of the graph around it', async () => {
    const g = layers(2);
    const yes = new GraphBuilder('yes');
    yes.value('h0', 'float32', ['n', 64]);
    yes.node('Relu', { inputs: ['h0'], outputs: ['positive'] });
    yes.output('positive', 'float32', ['n', 64]);
    g.input('flag', 'bool', []);
    const attributes = { then_branch: a.body(yes), else_branch: a.body(yes) };
    g.output(g.node('If', { inputs: ['flag'], outputs: ['y'], attributes }), 'float32', ['n', 64]);
    const { nodes } = await wellTyped(g);
    const branch = nodes.find(({ opType }) => opType === 'If')?.attribute[0]?.g;
    expect(branch?.valueInfo.map(({ type }) => declaredType(type))).toEqual([low]);
  });

  it('a graph whose nodes are in no order, and it is written in one', async () => {
    const g = new GraphBuilder('unsorted');
    g.input('x', 'float32', ['n', 64]);
    g.initializer('w', noise([64, 64], 0.1));
    g.initializer('two', noise([1], 2));
    g.node('Tanh', { name: 'last', inputs: ['sum'], outputs: ['y'] });
    g.node('Add', { name: 'sum', inputs: ['squares', 'h'], outputs: ['sum'] });
    g.node('Pow', { name: 'square', inputs: ['h', 'two'], outputs: ['squares'] });
    g.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['h'] });
    g.output('y', 'float32', ['n', 64]);
    const { input, model, output, keptBy } = await wellTyped(g);
    expect([keptBy('product'), keptBy('square')]).toEqual([undefined, 'op-default']);
    const nodes = model.proto.graph?.node ?? [];
    expect(inOrder(nodes).nodes).toEqual(nodes);
    expect(nodes.map(({ name }) => name).filter((name) => !/_to_/.test(name))).toEqual([
      'product',
      'square',
      'sum',
      'last',
    ]);
    if (precision === 'bf16') return;
    expect(difference(await run(input, feeds), await run(output, feeds))).toBeLessThan(5e-3);
  });

  it('a foreign operator with a body, which stays as it is, weights inside and outside', async () => {
    const g = layers(1);
    const body = new GraphBuilder('decoder');
    body.input('ids', 'float32', null);
    body.initializer('inner', noise([64, 64]));
    body.value('w0', 'float32', [64, 64]);
    body.node('MatMul', { name: 'own', inputs: ['ids', 'inner'], outputs: ['a'] });
    body.node('MatMul', { name: 'outer', inputs: ['a', 'w0'], outputs: ['logits'] });
    body.output('logits', 'float32', null);
    g.node('BeamSearch', {
      name: 'search',
      domain: 'com.microsoft',
      inputs: ['h0'],
      outputs: ['sequences'],
      attributes: { decoder: a.body(body) },
    });
    g.output('sequences', 'int32', null);
    const { keptBy, nodes } = await wellTyped(g, { opsets: { 'com.microsoft': 1 } });
    expect([keptBy('layer0'), keptBy('search'), keptBy('own'), keptBy('outer')]).toEqual([
      undefined,
      'unknown-operator',
      'unknown-operator',
      'unknown-operator',
    ]);
    const decoder = nodes.find(({ opType }) => opType === 'BeamSearch')?.attribute[0]?.g;
    expect(decoder?.initializer.map(({ dataType }) => dataType)).toEqual([1]);
  });

  it('a Scan of opset 8, which stays as it is', async () => {
    const g = layers(1);
    const step = new GraphBuilder('step');
    step.input('state', 'float32', [64]);
    step.input('item', 'float32', [64]);
    step.node('Add', { inputs: ['state', 'item'], outputs: ['next'] });
    step.output('next', 'float32', [64]);
    g.initializer('start', noise([1, 64]));
    const attributes = { body: a.body(step), num_scan_inputs: a.int(1) };
    g.node('Scan', { name: 'scan', inputs: ['', 'start', 'h0'], outputs: ['y'], attributes });
    g.output('y', 'float32', null);
    expect((await wellTyped(g, { opset: 8 })).keptBy('scan')).toBe('unknown-operator');
  });

  it('operators, domains and values called like methods of every object', async () => {
    const g = layers(1);
    const names = ['constructor', 'toString', 'hasOwnProperty', '__proto__'];
    for (const domain of ['', ...names])
      for (const name of names)
        g.node(name, { name: `${domain}/${name}`, domain, inputs: ['h0'], outputs: [`${domain}${name}`] });
    const opsets = Object.fromEntries(names.map((name) => [name, 1]));
    const { result, keptBy } = await wellTyped(g, { opsets });
    expect(result.kept).toHaveLength(20);
    expect(keptBy('/constructor')).toBe('unknown-operator');
  });

  it("a user's own LayerNormalization at an opset before ONNX had one", async () => {
    const g = layers(1);
    g.initializer('half', { dtype: 'float16', shape: [64], bytes: new Uint8Array(128) });
    g.node('LayerNormalization', { name: 'norm', inputs: ['half', 'h0'], outputs: ['y'] });
    g.output('y', 'float32', null);
    expect((await wellTyped(g, { opset: 13 })).keptBy('norm')).toBe('unknown-operator');
  });
});

describe('old models', () => {
  it('that list their weights as inputs get them converted, declarations and all', async () => {
    const g = layers(2);
    g.input('w0', 'float32', [64, 64]);
    const { declared, result } = await converted(await written(g));
    expect(declared('w0')).toBe('float16');
    expect(result.weights).toMatchObject({ converted: 2, keptFp32: 0 });
  });

  it('are raised to a newer opset with the same meaning, in bodies too', async () => {
    const body = (name: string, axes: number[]) => {
      const g = new GraphBuilder(name);
      g.node('ReduceMean', {
        name,
        inputs: ['h0'],
        outputs: [`${name}.m`],
        attributes: { axes: a.ints(axes), keepdims: a.int(1) },
      });
      g.node('Sub', { name: `${name}.sub`, inputs: ['h0', `${name}.m`], outputs: [`${name}.y`] });
      g.output(`${name}.y`, 'float32', null);
      return a.body(g);
    };
    const g = layers(1);
    g.initializer('yes', { dtype: 'bool', shape: [], bytes: Uint8Array.of(1) });
    g.node('If', {
      name: 'if',
      inputs: ['yes'],
      outputs: ['z'],
      attributes: { then_branch: body('rows', [1]), else_branch: body('columns', [0]) },
    });
    g.node('Softplus', { name: 'softplus', inputs: ['z'], outputs: ['y'] });
    g.output('y', 'float32', null);
    const input = await written(g, { opset: 13 });
    const { result, model, keptBy } = await converted(input, { precision: 'bf16' });
    expect(result.opset).toEqual({ before: 13, after: 22, reason: 'Softplus takes BF16 from opset 22 on' });
    expect(model.proto.irVersion).toBe(10n);
    expect(keptBy('rows')).toBeUndefined();
  });
});

describe('what else reads the file', () => {
  it.each([
    [17, 14, 8n],
    [21, 14, 10n],
    [17, 7, 7n],
  ])('of opset %i and IR %i gets the IR version that is needed', async (opset, irVersion, needed) => {
    const input = await written(layers(2), { opset, irVersion });
    const { output, model } = await converted(input, { precision: 'fp16' });
    expect(model.proto.irVersion).toBe(needed);
    expect([...(await run(output, feeds)).keys()]).toHaveLength(1);
    // The original runs as well, in the version that it needs.
    const session = await openOrtSession(input, { threads: 1 });
    expect(session.outputs).toHaveLength(1);
    await session.close();
  });

  it('is warned of a product at which ONNX Runtime crashes', async () => {
    const turned = (perm: readonly number[]) => {
      const g = new GraphBuilder('turned');
      g.input('x', 'float32', ['s', 'b', 64]);
      g.initializer('w', noise([64, 64], 0.1, 1));
      g.node('Transpose', { inputs: ['x'], outputs: ['t'], attributes: { perm: a.ints(perm) } });
      g.node('MatMul', { inputs: ['t', 'w'], outputs: ['y'] });
      g.output('y', 'float32', null);
      return g;
    };
    const crashing = await converted(await written(turned([1, 0, 2])), { precision: 'fp16' });
    expect(crashing.result.warnings).toEqual([expect.stringContaining('ORT_ENABLE_BASIC')]);
    const open = (path: string, level: string) =>
      spawnSync(process.execPath, [
        '--input-type=module',
        '-e',
        `import ort from 'onnxruntime-node';\nawait ort.InferenceSession.create(${JSON.stringify(path)}, { graphOptimizationLevel: '${level}' });`,
      ]);
    expect(open(crashing.output, 'all').signal).toBe('SIGSEGV');
    expect(open(crashing.output, 'basic').status).toBe(0);
    // Our own sessions compute 16-bit files in FP32, rounded, and do not have the pair.
    const session = await openOrtSession(crashing.output, { threads: 1 });
    await session.close();
    const other = await converted(await written(turned([0, 1, 2])), { precision: 'fp16' });
    expect(other.result.warnings).toEqual([]);
  });

  it('that wraps an engine is not converted', async () => {
    const g = new GraphBuilder('wrapped');
    g.input('x', 'float32', [1]);
    g.node('EPContext', { domain: 'com.microsoft', name: 'engine', inputs: ['x'], outputs: ['y'] });
    g.output('y', 'float32', [1]);
    const input = await written(g, { opsets: { 'com.microsoft': 1 } });
    await expect(convertModel(input, freshPath(), { precision: 'fp16' })).rejects.toMatchObject({
      code: 'TF_ONNX_NOT_A_MODEL',
      remedy: expect.stringContaining('engine inspect'),
    });
  });

  it('keeps a pair in FP32 of which one scale would become 0', async () => {
    const quantized = (scales: readonly number[]) => {
      const g = new GraphBuilder('pairs');
      g.input('x', 'float32', ['n', 2]);
      g.initializer('w', noise([2, 2], 0.1, 1));
      g.initializer('s', floats([2], scales));
      g.initializer('z', { dtype: 'int8', shape: [2], bytes: new Uint8Array(2) });
      g.node('QuantizeLinear', {
        name: 'q',
        inputs: ['w', 's', 'z'],
        outputs: ['wq'],
        attributes: { axis: a.int(1) },
      });
      g.node('DequantizeLinear', {
        name: 'd',
        inputs: ['wq', 's', 'z'],
        outputs: ['wd'],
        attributes: { axis: a.int(1) },
      });
      g.node('MatMul', { name: 'm', inputs: ['x', 'wd'], outputs: ['y'] });
      g.output('y', 'float32', ['n', 2]);
      return g;
    };
    const lost = await converted(await written(quantized([0.01, 1e-8])), { precision: 'fp16' });
    expect([lost.keptBy('q'), lost.keptBy('d')]).toEqual(['weight-range', 'weight-range']);
    const good = await converted(await written(quantized([0.01, 1e-3])), { precision: 'fp16' });
    expect([good.keptBy('q'), good.keptBy('d')]).toEqual([undefined, undefined]);
  });
});

describe('models made to be slow', () => {
  it('functions that call each other twice, thirty levels deep, end soon', async () => {
    const levels = Array.from({ length: 30 }, (_, level) => {
      const nodes = new GraphBuilder(`f${level}`);
      const called = level === 0 ? 'Tanh' : `F${level - 1}`;
      const domain = level === 0 ? '' : 'ai.test';
      nodes.node(called, { domain, inputs: ['v'], outputs: ['w'] });
      nodes.node(called, { domain, inputs: ['w'], outputs: ['out'] });
      return {
        domain: 'ai.test',
        name: `F${level}`,
        inputs: ['v'],
        outputs: ['out'],
        nodes,
        opsets: { '': 17, 'ai.test': 1 },
      };
    });
    const g = layers(1);
    g.node('F29', { domain: 'ai.test', inputs: ['h0'], outputs: ['y'] });
    g.output('y', 'float32', null);
    const input = await written(g, { opsets: { 'ai.test': 1 }, functions: levels });
    const { result } = await converted(input);
    expect(result.functionsInlined).toBeLessThanOrEqual(20_000);
  });

  it('thousands of casts and transposes in a row', async () => {
    const g = layers(1);
    let value = 'h0';
    let weight = 'w0';
    for (let index = 0; index < 3000; index++) {
      value = g.node('Cast', { inputs: [value], outputs: [`c${index}`], attributes: { to: a.int(1) } });
      weight = g.node('Max', { inputs: [weight, weight], outputs: [`t${index}`] });
    }
    g.node('MatMul', { name: 'last', inputs: [value, weight], outputs: ['y'] });
    g.output('y', 'float32', null);
    const { result } = await converted(await written(g));
    expect(result.casts).toEqual({ added: 3, removed: 3000 });
  });
});

it('returns or throws our error for any damaged model', async () => {
  const output = freshPath();
  let survived = 0;
  for (const { graph, spec } of traps) {
    const original = readFileSync(await written(graph(), spec));
    for (const bytes of mutations(original, 25, original.length)) {
      const input = freshPath();
      writeFileSync(input, bytes);
      try {
        await convertModel(input, output, { precision: survived % 2 === 0 ? 'fp16' : 'bf16' });
        survived++;
      } catch (error) {
        if (!(error instanceof TrtforgeError) || error.code === 'TF_INTERNAL') throw error;
      }
    }
  }
  expect(survived).toBeGreaterThan(20);
});
