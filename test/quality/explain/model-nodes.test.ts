import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { attribute as a, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { writeModel } from '../../../src/formats/onnx/write.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { explainLines } from '../../../src/quality/explain/explain.js';
import { placeSentences } from '../../../src/quality/explain/known-issues/issue.js';
import { modelNodes, openModelNodes } from '../../../src/quality/explain/model-nodes.js';

const ints = (...values: readonly number[]) =>
  tensorFrom('int64', [values.length], BigInt64Array.from(values.map(BigInt)));

/** The mask path of a DETR export beside a branch that has nothing to do with it. */
function detr() {
  const graph = new GraphBuilder('g');
  graph.input('mask', 'bool', ['batch', 64, 64]);
  graph.input('x', 'float32', ['batch', 3, 64, 64]);
  graph.node('Cast', {
    inputs: ['mask'],
    outputs: ['m0'],
    name: '/enc/Cast_2',
    attributes: { to: a.int(1) },
  });
  graph.node('Relu', { inputs: ['x'], outputs: ['r'], name: '/other/Relu' });
  graph.node('Unsqueeze', { inputs: ['m0', 'axes'], outputs: ['m1'], name: '/enc/Unsqueeze' });
  graph.node('Resize', { inputs: ['m1', '', '', 'sizes'], outputs: ['m2'], name: '/enc/Resize' });
  graph.node('Mul', { inputs: ['m2', 'r'], outputs: ['m3'], name: '' });
  graph.node('Sigmoid', { inputs: ['m3'], outputs: ['y'], name: '/enc/Sigmoid' });
  graph.node('Neg', { inputs: ['y'], outputs: ['z'], name: '/head/Neg' });
  graph.initializer('axes', ints(1));
  graph.initializer('sizes', ints(1, 1, 32, 32));
  graph.output('z', 'float32', null);
  return buildModel(graph, { opset: 17 });
}

const nodes = modelNodes(detr().proto);
const names = (place: ReturnType<typeof nodes.between>) => place?.nodes.map(({ name }) => name);

describe('nodes of a model', () => {
  it('between the first and last node of a region are those on the way, not those beside it', () => {
    const region = nodes.between('/enc/Cast_2', '/enc/Sigmoid');
    expect(region).toMatchObject({
      found: 'path',
      total: 5,
      operators: { Cast: 1, Mul: 1, Resize: 1, Sigmoid: 1, Unsqueeze: 1 },
    });
    expect(names(region)).toEqual(['/enc/Cast_2', '/enc/Unsqueeze', '/enc/Resize', 'm3', '/enc/Sigmoid']);
    expect(region?.suspects[0]).toMatchObject({
      nodes: ['/enc/Resize'],
      why: expect.stringMatching(/dynamo/),
    });
  });

  it('without a way between the two are those that stand between them in the file', () => {
    const region = nodes.between('/other/Relu', '/enc/Cast_2');
    expect(region).toMatchObject({ found: 'order', total: 2 });
    expect(placeSentences(region)[0]).toMatch(/no path joins the two; 2 nodes/);
  });

  it('are found by name, by output, by number, and behind a fused layer', () => {
    expect(names(nodes.named('/enc/Resize'))).toEqual(['/enc/Resize']);
    expect(names(nodes.named('node_of_m3'))).toEqual(['m3']);
    expect(names(nodes.named('3'))).toEqual(['/enc/Resize']);
    expect(names(nodes.named('/other/Relu + PWN(/enc/Sigmoid)'))).toEqual(['/other/Relu', '/enc/Sigmoid']);
    expect([nodes.named('nowhere'), nodes.named('99'), nodes.between('nowhere', '/enc/Sigmoid')]).toEqual([
      null,
      null,
      null,
    ]);
  });

  it('come with the types and shapes of what they take', () => {
    expect(nodes.named('/enc/Unsqueeze')?.nodes[0]).toEqual({
      name: '/enc/Unsqueeze',
      operator: 'Unsqueeze',
      graph: 'graph',
      inputs: [
        { name: 'm0', dtype: null, shape: null },
        { name: 'axes', dtype: 'int64', shape: [1] },
      ],
      outputs: [{ name: 'm1', dtype: null, shape: null }],
    });
    expect(placeSentences(nodes.named('/enc/Cast_2'))[0]).toMatch(
      /\/enc\/Cast_2: it is a Cast and takes mask \(bool \[batch, 64, 64\]\)/,
    );
  });

  it('of bodies are found too, and a region goes through what a body takes from outside', () => {
    const outer = new GraphBuilder('g');
    const body = new GraphBuilder('then');
    body.node('Neg', { inputs: ['r'], outputs: ['inner'], name: 'inside' });
    body.output('inner', 'float32', null);
    outer.input('c', 'bool', []);
    outer.input('x', 'float32', [1]);
    outer.node('Relu', { inputs: ['x'], outputs: ['r'], name: 'first' });
    outer.node('If', {
      inputs: ['c'],
      outputs: ['i'],
      name: 'choice',
      attributes: { then_branch: a.body(body), else_branch: a.body(body) },
    });
    outer.node('Abs', { inputs: ['i'], outputs: ['y'], name: 'last' });
    outer.output('y', 'float32', null);
    const model = modelNodes(buildModel(outer).proto);
    expect(names(model.between('first', 'last'))).toEqual(['first', 'choice', 'last']);
    expect(model.named('inside')?.nodes[0]).toMatchObject({ graph: expect.stringMatching(/then_branch/) });
    expect(model.between('inside', 'last')).toBeNull();
  });

  it('of a graph with a loop in it, which ONNX forbids, are walked all the same', () => {
    const graph = new GraphBuilder('g');
    graph.node('Neg', { inputs: ['b'], outputs: ['a'], name: 'one' });
    graph.node('Neg', { inputs: ['a'], outputs: ['b'], name: 'two' });
    expect(names(modelNodes(buildModel(graph).proto).between('one', 'two'))).toEqual(['one', 'two']);
  });
});

describe('a log with its model', () => {
  const folder = mkdtempSync(join(tmpdir(), 'trtforge-model-nodes-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const foreign =
    'Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[/enc/Cast_2.../enc/Sigmoid]}.)';
  const parser = 'ModelImporter.cpp:771: While parsing node number 3 [Resize -> "m2"]:';

  it('names what is behind a ForeignNode and behind a number', async () => {
    const path = join(folder, 'detr.onnx');
    await writeModel(detr(), path);
    const { issues } = explainLines('log', [foreign, parser], { model: openModelNodes(path) });
    expect(issues.map(({ id, model }) => [id, model?.total, model?.found])).toEqual([
      ['no-implementation-foreign-node', 5, 'path'],
      ['node-rejected', 1, 'name'],
    ]);
  });

  it('that is not a model states what it can', () => {
    const path = join(folder, 'broken.onnx');
    writeFileSync(path, 'no model');
    expect(openModelNodes(path)).toBeUndefined();
    expect(explainLines('log', [foreign], { model: openModelNodes(path) }).issues[0]?.model).toBeNull();
  });
});
