import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { TrtforgeError } from '../../../../src/errors.js';
import { attribute, GraphBuilder } from '../../../../src/formats/onnx/index.js';
import { factsOfModel } from '../../../../src/formats/onnx/inspect.js';
import { forge, verifyModel } from '../../../../src/index.js';
import { afterFailure, type JudgedFailure } from '../../../../src/products/study/bisect/after-failure.js';
import { verifyResultSchema } from '../../../../src/quality/verify/result.js';
import { SampleRuns } from '../../../../src/quality/verify/sample-runs.js';
import { forgeResultSchema } from '../../../../src/report/forge-result.js';
import { floats, modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { converted, noise } from '../../../formats/precision/judge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-repair-test-'));
// What is found does not depend on how busy the machine is: the limit of time is off.
const limit = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => new AbortController().signal);
afterAll(() => {
  limit.mockRestore();
  rmSync(folder, { recursive: true, force: true });
});

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

/**
 * An If whose body alone fails in FP16. `product`: it multiplies beyond FP16. `weight`: what it computes with are digits that FP16 has not, put together by a
 * Concat, which only moves them.
 */
const inBody = (fault: 'product' | 'weight') =>
  modelFile((graph) => {
    graph.input('x', 'float32', [4, 8]);
    graph.initializer('yes', { dtype: 'bool', shape: [], bytes: Uint8Array.of(1) });
    graph.initializer('w', noise([8, 8], 0.5, 3));
    graph.node('MatMul', { name: 'before', inputs: ['x', 'w'], outputs: ['h'] });
    const then = new GraphBuilder('then');
    then.initializer('k', floats('float32', [], [600]));
    if (fault === 'product') {
      then.node('Mul', { name: 'up', inputs: ['h', 'k'], outputs: ['large'] });
      then.node('Mul', { name: 'overflows', inputs: ['large', 'k'], outputs: ['then.y'] });
    } else {
      const half = Array.from({ length: 32 }, (_, at) => 1024 + (at % 7) / 16);
      then.initializer('half', floats('float32', [4, 8], half));
      then.initializer('even', floats('float32', [8, 8], Array(64).fill(1024)));
      then.node('Concat', {
        name: 'whole',
        inputs: ['half', 'half'],
        outputs: ['digits'],
        attributes: { axis: attribute.int(0) },
      });
      then.node('MatMul', { name: 'fine', inputs: ['h', 'digits'], outputs: ['f'] });
      then.node('MatMul', { name: 'coarse', inputs: ['h', 'even'], outputs: ['c'] });
      then.node('Sub', { name: 'left', inputs: ['f', 'c'], outputs: ['then.y'] });
    }
    then.output('then.y', 'float32', [4, 8]);
    const otherwise = new GraphBuilder('otherwise');
    otherwise.node('Tanh', { name: 'bend', inputs: ['h'], outputs: ['else.y'] });
    otherwise.output('else.y', 'float32', [4, 8]);
    graph.node('If', {
      name: 'if',
      inputs: ['yes'],
      outputs: ['y'],
      attributes: { then_branch: attribute.body(then), else_branch: attribute.body(otherwise) },
    });
    graph.output('y', 'float32', [4, 8]);
  });

const failing = async (reference: string, externalData: 'never' | 'always' = 'never') => {
  const { output } = await converted(reference, { externalData });
  return verifyModel({ reference, candidate: output, samples: 1, threads: 1 });
};

/** The verdict on the conversion that a repair proposes. */
const repaired = async (reference: string, { keepNodes }: { keepNodes: string[] }) => {
  const { output } = await converted(reference, { keepNodes: keepNodes.map((source) => new RegExp(source)) });
  return (await verifyModel({ reference, candidate: output, samples: 1, threads: 1 })).outcome;
};

describe('the repair of a failed conversion', () => {
  it.each(['never', 'always'] as const)(
    'is the one node that must stay FP32 (external data: %s)',
    async (where) => {
      const reference = await overflowing();
      const result = await failing(reference, where);
      expect(verifyResultSchema.parse(result)).toEqual(result);
      expect(result).toMatchObject({ outcome: 'fail', next: { passes: true } });
      expect(result.next?.keepNodes).toEqual(['^planted\\/\\(1\\)$']);
      expect(result.next?.command).toContain(`convert ${reference} --precision fp16 --keep-nodes '^planted`);
      expect(result.next?.bisect).toContain(`--against ${reference} --precision fp16 --samples 1`);
      expect(await repaired(reference, result.next!)).toBe('pass');
    },
  );

  it('is several nodes where one is not enough', async () => {
    const reference = await overflowing({ thirdly: true });
    const { next } = await failing(reference);
    expect(next).toMatchObject({ passes: true, keepNodes: [expect.stringContaining('planted'), '^third$'] });
    expect(await repaired(reference, next!)).toBe('pass');
  });

  it.each([
    ['product', ['overflows']],
    ['weight', ['whole', 'fine', 'left']],
  ] as const)('is in the body of an If where that is the cause: a %s', async (fault, needed) => {
    const reference = await inBody(fault);
    const { outcome, next } = await failing(reference);
    expect([outcome, next?.passes]).toEqual(['fail', true]);
    for (const name of needed) expect(next?.keepNodes).toContain(`^${name}$`);
    expect(await repaired(reference, next!)).toBe('pass');
    const without = next!.keepNodes.filter((source) => source !== `^${needed[0]}$`);
    expect(await repaired(reference, { keepNodes: without })).toBe('fail');
  });

  it('has no command for nodes without names, which only bisect writes', async () => {
    const { next } = await failing(await overflowing({ named: false }));
    expect(next).toMatchObject({ passes: true, keepNodes: [], command: null });
    expect(next?.message).toContain('Mul:y');
    expect(next?.bisect).toContain('trtforge bisect');
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
    expect(next).toMatchObject({ passes: true, tried: 1, keepNodes: [] });
    expect(next?.bisect).toContain("--val-range '[2,4]'");
  });

  it('is a conversion of the reference where the candidate is that of another model', async () => {
    const reference = await overflowing({ seed: 9 });
    const { output } = await converted(await overflowing({ thirdly: true }));
    const { outcome, next } = await verifyModel({ reference, candidate: output, samples: 1, threads: 1 });
    expect([outcome, next?.bisect]).toEqual(['fail', expect.stringContaining('trtforge bisect')]);
  });

  it('is looked for only where the candidate failed, and is a conversion of an FP32 model', async () => {
    const reference = await overflowing();
    const fine = await converted(reference, { keepNodes: [/planted/] });
    const request = { reference, samples: 1, threads: 1 };
    expect((await verifyModel({ ...request, candidate: fine.output })).next).toBeUndefined();
    const other = await overflowing({ seed: 9 });
    const far = await verifyModel({ ...request, candidate: other });
    expect([far.outcome, far.next]).toEqual(['fail', undefined]);
  });
});

describe('the search for a repair ends', () => {
  const search = async (more: Partial<JudgedFailure>, reference?: string, signal?: AbortSignal) => {
    const path = reference ?? (await overflowing());
    const { output } = await converted(path);
    const request = { reference: path, candidate: output, samples: 1, threads: 1 };
    const runs = new SampleRuns(request, {});
    const run = await runs.reference(() => {});
    const candidate = await runs.candidate(output, run, () => {});
    return afterFailure(
      { request, precision: 'fp16', reference: run, candidate, ms: 10, ...more },
      { signal },
    );
  };
  const judging =
    (passes: (path: string) => boolean): JudgedFailure['judge'] =>
    async ({ model }) => ({
      ...{
        outcome: passes(model) ? 'pass' : 'fail',
        reasons: [],
        used: 0,
        backend: null,
        sample: 0,
        inputs: [],
      },
    });

  it.each<[string, Partial<JudgedFailure>, number]>([
    ['where none of the nodes is the cause', { judge: judging(() => false) }, 2],
    ['before the first, where the comparison alone took longer than a search may', { ms: 150_000 }, 0],
    [
      'where nothing can be judged',
      { judge: () => Promise.reject(new TrtforgeError('TF_ONNXRUNTIME_FAILED', 'It ran out of memory.')) },
      2,
    ],
  ])('%s', async (_case, more, tried) => {
    const next = await search(more);
    expect(next).toMatchObject({ passes: false, tried, keepNodes: [], command: null });
    expect(next?.bisect).toContain('trtforge bisect');
  });

  it('without a repair where only the model as it was passes', async () => {
    const reference = await modelFile((graph) => {
      graph.input('x', 'float32', [4, 8]);
      graph.initializer('w', noise([8, 8], 0.5, 1));
      graph.node('MatMul', { name: 'a', inputs: ['x', 'w'], outputs: ['a'] });
      graph.initializer('two', floats('float32', [], [2]));
      graph.node('Div', { name: 'b', inputs: ['a', 'two'], outputs: ['b'] });
      graph.node('MatMul', { name: 'c', inputs: ['b', 'w'], outputs: ['y'] });
      graph.output('y', 'float32', [4, 8]);
    });
    // Div stays FP32 with its neighbours, so MatMul alone keeps the whole model.
    const judge = judging((path) => factsOfModel(path).ops.Cast === undefined);
    const next = await search({ judge }, reference);
    expect(next).toMatchObject({ passes: false, keepNodes: [], command: null });
    expect(next?.tried).toBeGreaterThan(1);
  });

  it('where the user ends it', async () => {
    const user = new AbortController();
    const judge = () => {
      user.abort();
      return Promise.reject(new TrtforgeError('TF_CANCELLED', 'Cancelled.'));
    };
    await expect(search({ judge }, undefined, user.signal)).rejects.toMatchObject({ code: 'TF_CANCELLED' });
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
  expect(result.verification?.next).toMatchObject({ passes: true });
  expect(result.verification?.next?.command).toBeNull();
  const goesOn = result.verification?.next?.bisect;
  expect(goesOn).toContain(`trtforge bisect ${result.verification?.candidate}`);
  expect(goesOn).toContain('--keep-nodes product0');
  expect(result.verdict.reasons.join()).toMatch(/trtforge\.config\.yaml: keep-nodes: \["\^planted/);
});
