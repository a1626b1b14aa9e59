import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { buildModel, GraphBuilder, writeModel } from '../../../src/formats/onnx/index.js';
import { planFleet } from '../../../src/products/fleet/index.js';
import type { FleetPlan } from '../../../src/products/fleet/plan-schema.js';
import { floats, noise } from '../../formats/precision/judge.js';
import { codeOfLine, trtforge } from '../../support/trtforge.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-fleet-heal-'));
const at = (name: string) => join(root, name);
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A product, then two factors: of 600 each the second is beyond FP16. */
async function model(name: string, by: number): Promise<string> {
  const g = new GraphBuilder('factors');
  g.input('x', 'float32', [4, 8]);
  g.initializer('w', noise([8, 8], 0.5, 1));
  g.initializer('k', floats([], [by]));
  g.node('MatMul', { name: 'product', inputs: ['x', 'w'], outputs: ['p'] });
  g.node('Mul', { name: 'first', inputs: ['p', 'k'], outputs: ['large'] });
  g.node('Mul', { name: 'second', inputs: ['large', 'k'], outputs: ['y'] });
  g.output('y', 'float32', [4, 8]);
  await writeModel(buildModel(g), at(name));
  return name;
}

async function fileOf(entry: object): Promise<string> {
  const targets = { l4: { target: 'tensorrt@10.13.3.9:sm_89' } };
  writeFileSync(at('engines.yaml'), stringify({ store: 'engines', targets, models: [entry] }));
  return at('engines.yaml');
}

async function planned(entry: object) {
  const { exitCode, err, json } = await trtforge(['fleet', 'plan', await fileOf(entry), '--json']);
  expect(exitCode, err).toBe(0);
  const [job] = json<FleetPlan>().jobs;
  return { options: job!.options, kept: job!.recipe.conversion?.keepNodes };
}

test('an entry that fails is planned with what it needs, without it as it is written', async () => {
  const entry = { model: await model('overflows.onnx', 600), precision: 'fp16' };
  expect(await planned(entry)).toEqual({ options: { precision: 'fp16' }, kept: [] });
  expect(await planned({ ...entry, heal: '5m' })).toEqual({
    options: { precision: 'fp16', 'keep-nodes': ['^second$'] },
    kept: ['/^second$/u'],
  });
});

test('one that passes is planned as it is', async () => {
  const entry = { model: await model('passes.onnx', 2), precision: 'fp16', heal: true };
  expect(await planned(entry)).toEqual({ options: { precision: 'fp16' }, kept: [] });
});

test('there is no plan without a verdict', async () => {
  const entry = { model: await model('undecided.onnx', 600), precision: 'fp16' };
  const plan = async (more: object) => codeOfLine(['fleet', 'plan', await fileOf({ ...entry, ...more })]);
  expect(await plan({ heal: 'soon' })).toBe('TF_USAGE');
  expect(await plan({ heal: '5m', model: undefined, bundle: 'undecided.onnx' })).toBe('TF_USAGE');
  // Nobody searches.
  const fleet = await fileOf({ ...entry, heal: '5m' });
  await expect(planFleet({ fleet })).rejects.toMatchObject({ code: 'TF_FLEET_REFUSED' });
});
