import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
  return { options: job!.options, kept: job!.recipe.conversion?.keepNodes, healed: job!.healed };
}

test('an entry that fails is planned with what it needs, without it as it is written', async () => {
  const entry = { model: await model('overflows.onnx', 600), precision: 'fp16' };
  expect(await planned(entry)).toEqual({ options: { precision: 'fp16' }, kept: [] });
  const { healed, ...job } = await planned({ ...entry, heal: '5m' });
  expect(job).toEqual({
    options: { precision: 'fp16', 'keep-nodes': ['^second$'] },
    kept: ['/^second$/u'],
  });
  // The price, with the page of the run.
  expect(healed).toMatchObject({
    raised: [{ nodes: ['second'], to: 'fp32', option: 'keep-nodes' }],
    prices: [
      { what: 'failed', nodes: { higher: 0, all: 3 } },
      { what: 'healed', nodes: { higher: 1, all: 3 } },
      { what: 'fp32', nodes: { higher: 3, all: 3 }, flops: 1 },
    ],
  });
  expect(existsSync(at(healed!.page))).toBe(true);
  const { out } = await trtforge(['fleet', 'plan', at('engines.yaml')]);
  expect(out).toMatch(/^\s+healed\s+1 of 3/m);
});

test('a search whose time ends has no plan, and its page the line that goes on, which ends in one', async () => {
  const entry = { model: await model('late.onnx', 600), precision: 'fp16', heal: '0.001s' };
  const words = ['fleet', 'plan', await fileOf(entry)];
  expect(await codeOfLine(words)).toBe('TF_FLEET_UNDECIDED');
  const page = () => readFileSync(at('runs/late-fp16/report.md'), 'utf8');
  expect(page()).toContain(`\ntrtforge ${words.join(' ')} --json\n`);
  for (let code = 'TF_FLEET_UNDECIDED'; code !== ''; ) {
    const { exitCode, json } = await trtforge([...words, '--json']);
    code = exitCode === 0 ? '' : json().error!.code;
    expect(['', 'TF_FLEET_UNDECIDED']).toContain(code);
  }
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
