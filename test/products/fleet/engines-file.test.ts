import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { TrtforgeError } from '../../../src/errors.js';
import { readEnginesFile, resolvedFile } from '../../../src/products/fleet/engines-file.js';
import { optionsIn } from '../../../src/products/fleet/model-options.js';
import { fleetPlanSchema } from '../../../src/products/fleet/plan-schema.js';
import { mutations } from '../../support/mutations.js';

const root = mkdtempSync(join(tmpdir(), 'trtforge-engines-file-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const path = join(root, 'engines.yaml');
const read = (text: string) => {
  writeFileSync(path, text);
  return readEnginesFile(path);
};
const whole = `store: engines
targets:
  l4: { target: 'tensorrt@10.13.3.9:sm_89' }
  any: { target: 'tensorrt-rtx:sm_89,sm_120', where: local }
gate: policy.yaml
models:
  - { model: detector.onnx, precision: int8, calibration: [cal/, x=@one.npy], batch: 1/8/32, targets: [l4] }
  - { bundle: speech/model_meta.json, precision: fp16, gate: own.yaml }
`;

const faultOf = (text: string): TrtforgeError => {
  try {
    read(text);
  } catch (error) {
    if (error instanceof TrtforgeError) return error;
    throw error;
  }
  throw new Error('It was read.');
};

describe('an engines file', () => {
  test('has every default filled in, and paths from its folder', () => {
    const file = read(whole);
    expect(file).toMatchObject({
      store: join(root, 'engines'),
      folder: root,
      targets: { l4: { where: 'local' }, any: {} },
      entries: [
        { path: 'detector.onnx', isBundle: false, targets: ['l4'], gate: 'policy.yaml' },
        { path: 'speech/model_meta.json', isBundle: true, targets: ['l4', 'any'], gate: 'own.yaml' },
      ],
    });
    expect(optionsIn(root, file.entries[0]!.options)).toEqual({
      precision: 'int8',
      calibration: [join(root, 'cal/'), `x=@${join(root, 'one.npy')}`],
      batch: '1/8/32',
    });
    const { models } = resolvedFile(file) as { models: readonly Record<string, unknown>[] };
    expect(models[0]).toMatchObject({ model: 'detector.onnx', precision: 'int8', 'high-precision': 'fp16' });
  });

  test.each([
    ['a misspelt key', whole.replace('store:', 'stor:'), '"store"'],
    ['a misspelt key of a target', whole.replace("target: 'tensorrt@", "taret: 'tensorrt@"), '"target"'],
    ['a misspelt option', whole.replace('precision: int8', 'precison: int8'), '"precision"'],
    ['a misspelt target', whole.replace('[l4]', '[l5]'), '"l4"'],
    ['a target that is none', whole.replace('sm_89,sm_120', 'sm_7'), null],
    ['an entry without a model', whole.replace('model: detector.onnx, ', ''), null],
    ['an entry with both', whole.replace('model: detector.onnx', 'model: a.onnx, bundle: b.json'), null],
    ['the name of a target', whole.replace('  l4:', '  L4:'), null],
    ['no target', whole.replace(/targets:\n[\s\S]*gate: p/, 'targets: {}\ngate: p'), null],
    ['ranges of a bundle', whole.replace('precision: fp16', "profile: ['x:1/2/4']"), null],
    ['a file of ranges of a bundle', whole.replace('precision: fp16', 'profile-from: r.yaml'), null],
    ['no models', whole.replace(/models:[\s\S]*/, 'models: []\n'), null],
    ['the GPU of a task', whole.replace('precision: int8', 'device: 1'), null],
    ['a value that no option takes', whole.replace('precision: int8', 'precision: int9'), null],
  ])('%s is named, with its line', (_, text, meant) => {
    const { code, message } = faultOf(text);
    expect(['TF_FLEET_INVALID', 'TF_USAGE']).toContain(code);
    expect(message).toMatch(/engines\.yaml, line \d+/);
    if (meant !== null) expect(message).toContain(`Did you mean ${meant}?`);
  });

  test.each([
    ['a place', whole.replace('where: local', 'where: lcoal'), /slurm, kubernetes and ssh/],
    ['a key of a place', whole.replace('where: local', 'where: { slrum: {} }'), /"slrum"/],
    ['targets that are no list', whole.replace('[l4]', 'l4'), /a list/],
    ['a name in capitals', whole.replace('  l4:', '  L4:'), /small letters/],
  ])('of %s what is expected is stated', (_, text, expected) => {
    expect(faultOf(text).message).toMatch(expected);
  });

  test('as it is printed with every default is read again', () => {
    const printed = stringify(resolvedFile(read(whole)));
    expect(resolvedFile(read(printed))).toEqual(resolvedFile(read(whole)));
  });

  test('damaged by chance it is read or named, never anything else', () => {
    let read = 0;
    for (const bytes of mutations(Buffer.from(whole), 300)) {
      writeFileSync(path, bytes);
      try {
        readEnginesFile(path);
        read++;
      } catch (error) {
        expect(error).toBeInstanceOf(TrtforgeError);
        expect((error as TrtforgeError).code).not.toBe('TF_INTERNAL');
      }
    }
    expect(read).toBeLessThan(300);
  });

  test('a document of another form is not a plan', () => {
    expect(fleetPlanSchema.safeParse({ schema: 'trtforge.fleet-plan/1', id: 'x' }).success).toBe(false);
  });
});
