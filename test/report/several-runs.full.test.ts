import { readFileSync, statSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { EnginesInspected } from '../../src/engines/plan/inspect.js';
import { attribute as a, GraphBuilder } from '../../src/formats/onnx/builder.js';
import { writeNpz } from '../../src/formats/tensor/npz.js';
import type { RunComparison } from '../../src/report/comparison/result.js';
import type { ForgeResult } from '../../src/report/forge-result.js';
import { freshPath, noise, written } from '../formats/precision/judge.js';
import { describeWith } from '../support/needs.js';
import { trtforge } from '../support/trtforge.js';

function network(seed: number): GraphBuilder {
  const g = new GraphBuilder('network');
  g.input('x', 'float32', [2, 32, 8, 8]);
  let from = 'x';
  for (let layer = 0; layer < 3; layer++) {
    g.initializer(`w${layer}`, noise([32, 32, 3, 3], 0.08, seed + layer));
    const attributes = { pads: a.ints([1, 1, 1, 1]) };
    g.node('Conv', { name: `conv${layer}`, inputs: [from, `w${layer}`], outputs: [`c${layer}`], attributes });
    g.node('Relu', { name: `relu${layer}`, inputs: [`c${layer}`], outputs: [`r${layer}`] });
    from = `r${layer}`;
  }
  g.node('Identity', { inputs: [from], outputs: ['y'] });
  g.output('y', 'float32', [2, 32, 8, 8]);
  return g;
}

const samples = freshPath('.npz');
writeNpz(samples, new Map([['x', noise([16, 32, 8, 8], 1, 3)]]));

/** A run root, and what it states. */
async function forged(model: string, ...words: readonly string[]) {
  const root = freshPath('/run');
  const line = ['forge', model, ...words, '--target', 'tensorrt-rtx:sm_89', '--run-root', root];
  const { exitCode } = await trtforge(line);
  const result: ForgeResult = JSON.parse(readFileSync(`${root}/report.json`, 'utf8'));
  return { root, exitCode, result };
}

describeWith('toolchain', 'report A B C over engines of TensorRT-RTX', () => {
  const calibrated = ['--calibration', samples];

  it('has a point for each, the one that fails apart, and what the plans hold', async () => {
    const model = await written(network(1));
    const runs = [
      await forged(model, '--precision', 'int8', ...calibrated),
      await forged(model, '--precision', 'fp16', ...calibrated),
      await forged(model, '--precision', 'bf16', ...calibrated, '--atol', '1e-9', '--rtol', '1e-9'),
      await forged(model),
      await forged(await written(network(7)), '--precision', 'fp16', ...calibrated),
    ];
    expect(runs.map(({ exitCode }) => exitCode)).toEqual([0, 0, 1, 0, 0]);
    const path = freshPath('.json');
    const roots = runs.map(({ root }) => root);
    expect((await trtforge(['report', ...roots, '--format', 'json', '-o', path])).exitCode).toBe(0);
    const { decision, pairs }: RunComparison = JSON.parse(readFileSync(path, 'utf8'));
    expect(decision?.cost.what).toBe('size of the plan');
    const [int8, fp16, bf16, whole, other] = decision!.points;
    expect(int8).toMatchObject({ name: 'A INT8', outcome: 'pass', missing: [] });
    expect(Number(int8?.error)).toBeGreaterThan(Number(fp16?.error));
    expect(bf16).toMatchObject({ outcome: 'fail', isFront: false });
    expect(whole).toMatchObject({ outcome: 'built', error: 0 });
    expect(other?.missing.join()).toContain('models differ');
    for (const [at, { result }] of runs.entries()) {
      const { bytes, contents } = result.build!.passport.plan;
      expect(decision!.points[at]?.cost).toBe(bytes);
      const { weightsBytes, kernelsBytes, programBytes } = contents!;
      const known = weightsBytes + kernelsBytes + programBytes;
      expect([known <= bytes, known > 0.9 * bytes]).toEqual([true, true]);
    }
    // Three convolutions of 32 × 32 × 3 × 3 weights, in 4, 2 and 1 bytes.
    const weights = runs.map(({ result }) => result.build!.passport.plan.contents!.weightsBytes);
    for (const [at, size] of [1, 2, 2, 4].entries()) {
      expect(weights[at]).toBeGreaterThanOrEqual(27_648 * size);
      expect(weights[at]).toBeLessThan(27_648 * size * 1.2);
    }
    const rows = pairs[0]!.parts.find(({ part }) => part === 'engine')!.rows;
    expect(rows.find(({ what }) => what === 'weights in the plan')?.a).toBe(weights[0]);

    const text = await trtforge(['report', ...roots, '--format', 'markdown', '-o', '-']);
    for (const { name, missing } of decision!.points)
      for (const word of [name, ...missing]) expect(text.out).toContain(word);
    expect((await trtforge(['report', ...roots])).out).toBe(`${roots[0]}/comparison.html`);
    expect(readFileSync(`${roots[0]}/comparison.html`, 'utf8')).toContain('A INT8');

    const { engine, build } = runs[0]!.result;
    const inspected = await trtforge(['engine', 'inspect', engine!, '--json']);
    const [facts] = inspected.json<EnginesInspected>().engines;
    expect(facts?.contents).toEqual(build!.passport.plan.contents);
    expect(facts?.planBytes).toBe(statSync(engine!).size);
    const printed = (await trtforge(['engine', 'inspect', engine!])).out;
    expect(printed).toContain('of weights');
  });
});
