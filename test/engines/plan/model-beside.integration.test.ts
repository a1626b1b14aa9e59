import { copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { contextModel } from '../../../src/engines/exports/context-model.js';
import { readModelContent } from '../../../src/engines/identity/model-content.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { changedModel } from '../../../src/engines/plan/context-model.js';
import { writeDetector, writePlan } from '../../fakes/nvinfer-engine.js';
import { trtforge } from '../../support/trtforge.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-model-beside-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (...names: string[]) => join(folder, ...names);
const environment = { ...process.env, XDG_CACHE_HOME: at('xdg'), TENSORRT_CACHE_DIR: at('store') };

/** The model that every engine here was built from, and one that took its place. */
let built: string;
beforeAll(async () => {
  await writeDetector(at('first.onnx'));
  await writeDetector(at('retrained.onnx'), { outputs: { output0: ['batch', 7, 84] } });
  built = (await readModelContent(at('first.onnx'), { environment })).digest;
});

/** The engine in a folder of its own, with a model that lies there under a name. */
async function beside(model: 'first' | 'retrained', name: string, engine = 'det.engine'): Promise<string> {
  const place = mkdtempSync(at('case-'));
  copyFileSync(at(`${model}.onnx`), join(place, name));
  return writePlan(join(place, engine), { model: built, name: 'det' });
}

it.each([
  ['engine', 'inspect'],
  ['which', '--deepstream', '9.0'],
  ['run', '--inputs', 'random'],
])('trtforge %s %s compares the digests', async (...verb) => {
  const at = verb[0] === 'engine' ? 2 : 1;
  const printed = async (model: 'first' | 'retrained') => {
    const { out, err } = await trtforge(verb.toSpliced(at, 0, await beside(model, 'det.onnx')), environment);
    return `${out}${err}`;
  };
  expect(await printed('retrained')).toContain(built.slice(0, 12));
  expect(await printed('first')).not.toContain('was built from');
});

it.each([
  ['det.engine', 'det.onnx', true],
  ['other.engine', 'other.onnx', true],
  ['det.onnx_b4_gpu0_fp16.engine', 'det.onnx', true],
  ['other.engine', 'third.onnx', false],
])('%s belongs to %s: %s', async (engine, name, isCompared) => {
  const path = await beside('retrained', name, engine);
  expect((await changedModel(path, readPassport(path), { environment })) !== null).toBe(isCompared);
});

it('a wrapped engine is compared with the model it stands for, never with its wrapper', async () => {
  const path = await beside('retrained', 'det.onnx');
  const { plan } = readPassport(path);
  const wrapper = path.replace('.engine', '_ctx.onnx');
  writeFileSync(wrapper, contextModel(plan, 'det.engine'));
  const codesOf = async () => {
    const { json } = await trtforge(['engine', 'inspect', wrapper, '--json'], environment);
    const [engine] = json().engines as { findings: { code: string }[] }[];
    return engine!.findings.map(({ code }) => code);
  };
  expect(await codesOf()).toEqual(['model-changed']);
  renameSync(wrapper, path.replace('.engine', '.onnx'));
  expect(await changedModel(path, readPassport(path), { environment })).toBeNull();
  for (const name of ['a_ctx.onnx', 'det_ctx.onnx'])
    writeFileSync(join(path, '..', name), contextModel(plan, 'det.engine'));
  expect(await codesOf()).toEqual(['plan-shared']);
});
