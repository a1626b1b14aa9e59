import { describe, expect, it } from 'vitest';
import { attribute as a, buildModel, GraphBuilder } from '../../../src/formats/onnx/builder.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { explainLines } from '../../../src/quality/explain/explain.js';
import { modelNodes } from '../../../src/quality/explain/model-nodes.js';
import { silentIssuesOf } from '../../../src/quality/explain/silent-issues.js';

const axis = (value: number, dtype: 'int32' | 'int64' = 'int64') =>
  dtype === 'int64'
    ? tensorFrom('int64', [], BigInt64Array.of(BigInt(value)))
    : tensorFrom('int32', [], Int32Array.of(value));

/** Two running sums of one input, the second with these attributes and this axis; each has a constant of its own, as exporters write it. */
function sums(second: Readonly<Record<string, number>>, secondAxis = 1, dtype: 'int32' | 'int64' = 'int64') {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', [4, 2]);
  graph.initializer('axis_a', axis(1));
  graph.initializer('axis_b', axis(secondAxis, dtype));
  graph.node('CumSum', { inputs: ['x', 'axis_a'], outputs: ['a'], name: '/first' });
  const attributes = Object.fromEntries(Object.entries(second).map(([name, value]) => [name, a.int(value)]));
  graph.node('CumSum', { inputs: ['x', 'axis_b'], outputs: ['b'], name: '/second', attributes });
  for (const name of ['a', 'b']) graph.output(name, 'float32', [4, 2]);
  return modelNodes(buildModel(graph, { opset: 17 }).proto);
}

function sampled() {
  const graph = new GraphBuilder('g');
  graph.input('x', 'float32', [1, 3, 8, 8]);
  graph.input('grid', 'float32', [1, 4, 4, 2]);
  graph.node('GridSample', { inputs: ['x', 'grid'], outputs: ['y'], name: '/decoder/GridSample' });
  graph.output('y', 'float32', [1, 3, 4, 4]);
  return modelNodes(buildModel(graph, { opset: 17 }).proto);
}

const idsOf = (
  model: Parameters<typeof silentIssuesOf>[0],
  version: string,
  product: 'tensorrt' | 'tensorrt-rtx' = 'tensorrt',
) => silentIssuesOf(model, { product, version }).map(({ id }) => id);

describe('what TensorRT computes wrongly without a line in any log', () => {
  it.each<[string, Parameters<typeof sums>, readonly string[]]>([
    ['of one axis, each with a constant of its own', [{}], []],
    ['of one axis written as int32 and as int64', [{}, 1, 'int32'], []],
    ['of two axes', [{}, 0], ['cumsum-merged']],
    ['of which one runs backwards', [{ reverse: 1 }], ['cumsum-merged']],
    ['of which one leaves its own element out', [{ exclusive: 1 }], ['cumsum-merged']],
    ['of which one says what is the default', [{ reverse: 0 }], []],
  ])('running sums %s', (_case, second, expected) => {
    expect(idsOf(sums(...second), '10.9.0.34')).toEqual(expected);
  });

  it('is reported with the nodes it strikes, and where it is reported', () => {
    const [issue] = silentIssuesOf(sums({}, 0), { product: 'tensorrt', version: '10.8.0' });
    expect(issue).toMatchObject({ severity: 'warning', count: 1, lines: [] });
    expect(issue?.model?.nodes.map(({ name }) => name)).toEqual(['/first', '/second']);
    expect(issue?.source).toMatch(/^https:/);
  });

  it.each([
    ['10.7.0.23', [], []],
    ['10.12.0', ['cumsum-merged'], []],
    ['10.13', ['cumsum-merged'], ['grid-sample-wrong']],
    ['11.1.0.5', ['cumsum-merged'], ['grid-sample-wrong']],
    ['11.2.1', ['cumsum-merged'], []],
  ])('belongs to versions: %s', (version, ofSums, ofSamples) => {
    expect(idsOf(sums({}, 0), version)).toEqual(ofSums);
    expect(idsOf(sampled(), version)).toEqual(ofSamples);
  });

  it('is of TensorRT alone, and of models that can be read', () => {
    expect(idsOf(sampled(), '10.14.0', 'tensorrt-rtx')).toEqual([]);
    expect(idsOf('/there/is/no/model.onnx', '10.14.0')).toEqual([]);
  });

  it('is reported for a log that passed, with its model, and of none that failed', () => {
    const log = (end: string) => [
      '&&&& RUNNING TensorRT.trtexec [TensorRT v101400] [b48] # trtexec --onnx=m.onnx',
      `&&&& ${end} TensorRT.trtexec [TensorRT v101400] [b48] # trtexec --onnx=m.onnx`,
    ];
    const ids = (end: string, model?: ReturnType<typeof sampled>) =>
      explainLines('log', log(end), { model }).issues.map(({ id }) => id);
    expect(ids('PASSED', sampled())).toEqual(['grid-sample-wrong']);
    expect(ids('PASSED')).toEqual([]);
    expect(ids('FAILED', sampled())).not.toContain('grid-sample-wrong');
  });
});
