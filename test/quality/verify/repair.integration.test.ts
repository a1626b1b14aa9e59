import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { TrtforgeError } from '../../../src/errors.js';
import { forge } from '../../../src/forge/forge.js';
import { factsOfModel } from '../../../src/formats/onnx/facts-of-model.js';
import { type FailedComparison, findRepair } from '../../../src/quality/verify/repair.js';
import { verifyResultSchema } from '../../../src/quality/verify/result.js';
import { verifyModel } from '../../../src/quality/verify/verify.js';
import { forgeResultSchema } from '../../../src/report/result.js';
import { floats, modelFile } from '../../engines/runtime/onnxruntime/models.js';
import { converted, noise } from '../../formats/precision/judge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-repair-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Four layers, then x * 300 * 300: the last product alone is beyond FP16. With `thirdly` another follows, so that two products must stay FP32. */
const overflowing = (
  more: { readonly seed?: number; readonly named?: boolean; readonly thirdly?: boolean } = {},
) =>
  modelFile((graph) => {
    const { seed = 1, named = true, thirdly = false } = more;
    const name = (text: string) => (named ? { name: text } : {});
    graph.input('x', 'float32', [4, 8]);
    let at = 'x';
    for (const layer of [0, 1, 2, 3]) {
      graph.initializer(`w${layer}`, noise([8, 8], 0.5, seed + layer));
      graph.initializer(`s${layer}`, floats('float32', [], [1.5]));
      graph.node('MatMul', { ...name(`product${layer}`), inputs: [at, `w${layer}`], outputs: [`p${layer}`] });
      graph.node('Mul', {
        ...name(`scale${layer}`),
        inputs: [`p${layer}`, `s${layer}`],
        outputs: [`m${layer}`],
      });
      graph.node('Tanh', { ...name(`bend${layer}`), inputs: [`m${layer}`], outputs: [`t${layer}`] });
      at = `t${layer}`;
    }
    graph.initializer('k', floats('float32', [], [600]));
    graph.node('Mul', { ...name('first'), inputs: [at, 'k'], outputs: ['large'] });
    graph.node('Mul', {
      ...name('planted/(1)'),
      inputs: ['large', 'k'],
      outputs: [thirdly ? 'larger' : 'y'],
    });
    if (thirdly) graph.node('Mul', { ...name('third'), inputs: ['larger', 'k'], outputs: ['y'] });
    graph.output('y', 'float32', [4, 8]);
  });

const failing = async (reference: string, externalData: 'never' | 'always' = 'never') => {
  const { output } = await converted(reference, { externalData });
  return verifyModel({ reference, candidate: output, samples: 1, threads: 1 });
};

/** The verdict on the conversion that a repair proposes. */
const repaired = async (
  reference: string,
  { keepOps, keepNodes }: { keepOps: string[]; keepNodes: string[] },
) => {
  const { output } = await converted(reference, {
    keepOps: new Set(keepOps),
    keepNodes: keepNodes.map((source) => new RegExp(source)),
  });
  return (await verifyModel({ reference, candidate: output, samples: 1, threads: 1 })).outcome;
};

describe('the repair of a failed conversion', () => {
  it.each(['never', 'always'] as const)(
    'is the one node that must stay FP32 (external data: %s)',
    async (where) => {
      const reference = await overflowing();
      const result = await failing(reference, where);
      expect(verifyResultSchema.parse(result)).toEqual(result);
      expect(result).toMatchObject({ outcome: 'fail', next: { passes: true, keepOps: [] } });
      expect(result.next?.keepNodes).toEqual(['^planted\\/\\(1\\)$']);
      // The candidate itself is not compared again.
      expect(result.next?.tried).toBe(5);
      expect(result.next?.kept).toBe(1);
      expect(result.next?.command).toContain(`convert ${reference} --precision fp16 --keep-nodes '^planted`);
      expect(await repaired(reference, result.next!)).toBe('pass');
    },
  );

  it('is several nodes where one is not enough', async () => {
    const reference = await overflowing({ thirdly: true });
    const { next } = await failing(reference);
    expect(next).toMatchObject({ passes: true, keepNodes: [expect.stringContaining('planted'), '^third$'] });
    expect(await repaired(reference, next!)).toBe('pass');
  });

  it('is an operator where nodes have no names', async () => {
    const reference = await overflowing({ named: false });
    const { next } = await failing(reference);
    expect(next).toMatchObject({ passes: true, keepOps: ['Mul'], keepNodes: [] });
    expect(await repaired(reference, next!)).toBe('pass');
  });

  it('is the default conversion where the candidate is another one that fails', async () => {
    const reference = await modelFile((graph) => {
      graph.input('x', 'float32', [4, 8]);
      graph.node('Exp', { inputs: ['x'], outputs: ['e'] });
      graph.node('Exp', { inputs: ['e'], outputs: ['f'] });
      graph.node('Log', { inputs: ['f'], outputs: ['g'] });
      graph.node('Log', { inputs: ['g'], outputs: ['y'] });
      graph.output('y', 'float32', [4, 8]);
    });
    const { output } = await converted(reference, { convertOps: new Set(['Exp']) });
    const ranges = [{ name: null, low: 2, high: 4 }];
    const { next } = await verifyModel({ reference, candidate: output, samples: 1, threads: 1, ranges });
    expect(next).toMatchObject({ passes: true, tried: 1, keepOps: [], keepNodes: [] });
  });

  it('is looked for only where the candidate failed and is a conversion of the reference', async () => {
    const reference = await overflowing();
    const fine = await converted(reference, { keepNodes: [/planted/] });
    const request = { reference, samples: 1, threads: 1 };
    expect((await verifyModel({ ...request, candidate: fine.output })).next).toBeUndefined();
    const other = await overflowing({ seed: 9 });
    const far = await verifyModel({ ...request, candidate: other });
    expect([far.outcome, far.next]).toEqual(['fail', undefined]);
    const longer = await converted(await overflowing({ thirdly: true }));
    const long = await verifyModel({ ...request, candidate: longer.output });
    expect([long.outcome, long.next]).toEqual(['fail', undefined]);
  });
});

describe('the search for a repair ends', () => {
  const search = async (more: Partial<FailedComparison>) => {
    const reference = await overflowing();
    const { output } = await converted(reference);
    return findRepair({
      request: { reference, candidate: output },
      precision: 'fp16',
      ioTypes: 'keep',
      ms: 10,
      passes: () => Promise.resolve(false),
      onTrial: () => {},
      ...more,
    });
  };

  it.each<[string, Partial<FailedComparison>, number]>([
    ['after eight conversions', {}, 8],
    ['before the first, where the comparison alone took minutes', { ms: 150_000 }, 0],
    [
      'where a trial throws',
      { passes: () => Promise.reject(new TrtforgeError('TF_ONNXRUNTIME_FAILED', 'It ran out of memory.')) },
      1,
    ],
  ])('%s', async (_case, more, tried) => {
    const repair = await search(more);
    expect(repair).toMatchObject({ passes: false, keepOps: [], keepNodes: [], kept: null, command: null });
    expect(repair?.tried).toBe(tried);
  });

  it('without a repair where only the model as it was passes', async () => {
    const reference = await modelFile((graph) => {
      graph.input('x', 'float32', [4, 8]);
      graph.initializer('w', noise([8, 8], 0.5, 1));
      graph.node('MatMul', { inputs: ['x', 'w'], outputs: ['a'] });
      graph.initializer('two', floats('float32', [], [2]));
      graph.node('Div', { inputs: ['a', 'two'], outputs: ['b'] });
      graph.node('MatMul', { inputs: ['b', 'w'], outputs: ['y'] });
      graph.output('y', 'float32', [4, 8]);
    });
    const { output } = await converted(reference);
    // Div stays FP32 with its neighbours, so MatMul alone keeps the whole model.
    const passes = async (path: string) => factsOfModel(path).ops.Cast === undefined;
    const repair = await search({ request: { reference, candidate: output }, passes });
    expect(repair).toMatchObject({ passes: false, keepOps: [], command: null });
    expect(repair?.tried).toBeGreaterThan(1);
  });

  it('where the user ends it', async () => {
    const passes = () => Promise.reject(new TrtforgeError('TF_CANCELLED', 'Cancelled.'));
    await expect(search({ passes })).rejects.toThrow(expect.objectContaining({ code: 'TF_CANCELLED' }));
  });
});

it('forge proposes the repair as configuration of the next run', async () => {
  const model = await overflowing();
  const conversion = { keepNodes: [/product0/] };
  const options = {
    model,
    precision: 'fp16',
    skip: ['build', 'bench'],
    conversion,
    verify: { samples: 1, threads: 1 },
  } as const;
  const run = { ...options, runRoot: join(folder, 'run') };
  const result = await forge(run);
  expect(forgeResultSchema.parse(result)).toEqual(result);
  expect(result.verification?.next).toMatchObject({ passes: true, kept: 2 });
  expect(result.verification?.next?.command).toBeNull();
  expect(result.verdict.reasons.join()).toMatch(/trtforge\.config\.yaml: keep-nodes: \["\^planted/);
});
