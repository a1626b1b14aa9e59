import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { diffEngines } from '../../../src/engines/layers/diff.js';
import { layersText, readLayers } from '../../../src/engines/layers/read-layers.js';
import {
  engineDiffSchema,
  type LayersResult,
  layersResultSchema,
} from '../../../src/engines/layers/result.js';
import { layerFindings, summarizeLayers } from '../../../src/engines/layers/summary.js';

const fixture = (name: string) =>
  fileURLToPath(new URL(`../../fixtures/engine-layers/${name}.json`, import.meta.url));

function resultOf(text: string, file = 'engine'): LayersResult {
  const read = readLayers(text);
  return {
    schema: 'trtforge.engine-layers/1',
    kind: 'layers',
    file,
    layersFrom: file,
    planBytes: null,
    planSha256: null,
    loaded: null,
    ...read,
    summary: summarizeLayers(read),
    findings: layerFindings(read, file),
  };
}

const recorded = (name: string) => resultOf(layersText(fixture(name)), name);
const [trt10, trt8] = [recorded('10.6-resnet50-fp16'), recorded('8.6-resnet50-fp16')];

interface Spec {
  readonly name: string;
  readonly nodes?: readonly string[];
  readonly type?: string;
  readonly format?: string;
  readonly tactic?: string;
  readonly reads?: string;
  readonly writes?: string;
}

/** An engine of layers described in a few words. */
const engine = (...layers: readonly Spec[]): LayersResult =>
  resultOf(
    JSON.stringify({
      Layers: layers.map(
        ({ name, nodes = [], type = 'Conv', format = 'Half', tactic = 't', reads = 'x', writes = name }) => ({
          Name: name,
          LayerType: type,
          Inputs: [{ Name: reads, Dimensions: [1, 8], 'Format/Datatype': format }],
          Outputs: [{ Name: writes, Dimensions: [1, 8], 'Format/Datatype': format }],
          TacticName: tactic,
          Metadata: nodes.map((node) => `[ONNX Layer: ${node}]`).join('\u001e'),
        }),
      ),
      Bindings: ['x', 'y'],
    }),
  );

describe('the sums of an engine', () => {
  it('have every weight of the model once', () => {
    // ResNet-50 has 25,557,032 parameters; those of its batch normalizations were folded when it was exported.
    for (const { summary } of [trt10, trt8]) {
      expect(summary.weightBytes / 2).toBeGreaterThan(25_500_000);
      expect(summary.weightBytes / 2).toBeLessThan(25_600_000);
      expect(summary.onnxNodes).toBeGreaterThan(115);
    }
  });

  it('count layers by type and by what they compute in, without constants and copies', () => {
    expect(trt10.summary).toMatchObject({
      layers: 153,
      copies: { layers: 48, ofConstants: 47 },
      openShapes: 2,
    });
    expect(trt10.summary.byType.slice(0, 3)).toMatchObject([
      { name: 'CaskConvolution', layers: 50 },
      { name: 'Constant', layers: 47 },
      { name: 'kgen', layers: 27 },
    ]);
    expect(trt10.summary.byPrecision).toMatchObject([{ name: 'float16', layers: 57 }]);
    expect(layersResultSchema.parse(trt10)).toEqual(trt10);
  });

  it('name the copies that could be avoided', () => {
    expect(trt10.findings.map(({ code }) => code)).toEqual(['engine-constant-copies', 'engine-input-copies']);
    expect(trt8.findings.map(({ code }) => code)).toEqual([
      'engine-constant-copies',
      'engine-input-copies',
      'engine-reformats',
    ]);
    expect(trt10.findings[1]?.message).toMatch(
      /^1 layer copies an input .* \(12\.3 MiB a run: "Reformatting CopyNode/,
    );
  });

  it('report layers that stayed in FP32 among many that did not', () => {
    const half = Array.from({ length: 3 }, (_, index) => ({ name: `half${index}` }));
    expect(engine(...half, { name: 'norm', format: 'Float' }).findings).toMatchObject([
      {
        code: 'engine-fp32-layers',
        message: expect.stringMatching(/^1 of 4 computing layers is in FP32 .*"norm"/),
      },
    ]);
    expect(engine({ name: 'a', format: 'Float' }, { name: 'b', format: 'Float' }).findings).toEqual([]);
  });

  it('of an engine without detail are names, and that is reported', () => {
    expect(resultOf('{"Layers":["a"],"Bindings":[]}').findings).toMatchObject([
      { code: 'engine-names-only' },
    ]);
  });
});

describe('two engines', () => {
  it('that are one and the same differ in nothing', () => {
    for (const one of [trt10, trt8]) {
      const diff = diffEngines(one, one);
      expect(diff).toMatchObject({ changed: [], fusions: [], onlyA: [], onlyB: [] });
      expect(diff.same).toBe(diff.matched);
    }
  });

  it('of 8.6 and 10.6 are matched by their ONNX nodes, and differ in tactics', () => {
    const diff = diffEngines(trt8, trt10);
    expect(engineDiffSchema.parse(diff)).toEqual(diff);
    expect(diff).toMatchObject({ matched: 56, same: 2, fusions: [], onlyA: [] });
    expect(diff.onlyB).toEqual(['__myl_Res_myl150_1']);
    const changed = diff.changed.find(({ onnxNodes }) => onnxNodes[0] === '/layer1/layer1.0/conv3/Conv');
    expect(changed?.changes).toEqual([
      {
        what: 'tactic',
        a: expect.stringMatching(/^sm80_xmma_gemm/),
        b: expect.stringMatching(/^sm90_xmma_gemm/),
      },
    ]);
  });

  it('report changed precision, layout and tactic of the same nodes under other names', () => {
    const diff = diffEngines(
      engine({ name: 'conv + relu', nodes: ['conv', 'relu'], format: 'Float', tactic: 'a' }),
      engine({ name: 'relu fused into conv', nodes: ['relu', 'conv'], format: 'Half', tactic: 'b' }),
    );
    expect(diff).toMatchObject({
      matched: 1,
      same: 0,
      changed: [
        {
          a: 'conv + relu',
          b: 'relu fused into conv',
          changes: [
            { what: 'precision', a: 'float32', b: 'float16' },
            { what: 'tactic', a: 'a', b: 'b' },
            { what: 'inputs', a: 'Float', b: 'Half' },
            { what: 'outputs', a: 'Float', b: 'Half' },
          ],
        },
      ],
    });
  });

  it('report nodes that were fused in another way, and layers that only one has', () => {
    const diff = diffEngines(
      engine({ name: 'ab', nodes: ['a', 'b'] }, { name: 'c', nodes: ['c'] }, { name: 'gone', nodes: ['g'] }),
      engine({ name: 'a', nodes: ['a'] }, { name: 'bc', nodes: ['b', 'c'] }, { name: '__myl_New' }),
    );
    expect(diff).toMatchObject({
      matched: 0,
      fusions: [{ onnxNodes: ['a', 'b', 'c'], a: ['ab', 'c'], b: ['a', 'bc'] }],
      onlyA: ['gone'],
      onlyB: ['__myl_New'],
    });
  });

  it('pair layers of the same nodes in order, and leave copies and constants to the sums', () => {
    const one = engine(
      { name: 'first', nodes: ['n'], tactic: '1' },
      { name: 'second', nodes: ['n'], tactic: '2' },
      { name: 'Reformatting CopyNode for Input Tensor 0 to first', type: 'Reformat' },
      { name: 'w', type: 'Constant' },
    );
    const other = engine({ name: 'I', nodes: ['n'], tactic: '1' }, { name: 'II', nodes: ['n'], tactic: '2' });
    expect(diffEngines(one, other)).toMatchObject({ matched: 2, same: 2, onlyA: [] });
    expect(diffEngines(one, other).a.summary.copies.layers).toBe(1);
  });

  it('of any layers account for every layer', () => {
    const node = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const spec = fc.record({
      name: fc.string({ maxLength: 3 }),
      nodes: fc.uniqueArray(node, { maxLength: 3 }),
    });
    const layers = fc.array(spec, { maxLength: 8 });
    fc.assert(
      fc.property(layers, layers, (a, b) => {
        const diff = engineDiffSchema.parse(diffEngines(engine(...a), engine(...b)));
        const fused = (side: 'a' | 'b') => diff.fusions.reduce((sum, group) => sum + group[side].length, 0);
        const computing = (specs: typeof a) => engine(...specs).layers.filter(({ copies }) => !copies).length;
        expect(diff.matched + fused('a') + diff.onlyA.length).toBe(computing(a));
        expect(diff.matched + fused('b') + diff.onlyB.length).toBe(computing(b));
      }),
    );
  });
});
