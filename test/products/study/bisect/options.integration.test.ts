import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { readPassport } from '../../../../src/engines/identity/passport.js';
import { writeNpz } from '../../../../src/formats/tensor/npz.js';
import type { BisectResult } from '../../../../src/products/study/bisect/result.js';
import { modelFile } from '../../../engines/runtime/onnxruntime/models.js';
import { converted, floats, freshPath, noise } from '../../../formats/precision/judge.js';
import { describeWith } from '../../../support/needs.js';
import { trtforge } from '../../../support/trtforge.js';

/** Three products, the middle one beyond FP16. */
const network = () =>
  modelFile((graph) => {
    graph.input('x', 'float32', ['batch', 16]);
    graph.initializer('k', floats([], [60000]));
    for (const [at, name] of ['first', 'last'].entries())
      graph.initializer(`${name}.w`, noise([16, 16], 0.3, at));
    graph.node('MatMul', { name: 'first', inputs: ['x', 'first.w'], outputs: ['a'] });
    graph.node('Mul', { name: 'up', inputs: ['a', 'k'], outputs: ['b'] });
    graph.node('Div', { name: 'down', inputs: ['b', 'k'], outputs: ['c'] });
    graph.node('MatMul', { name: 'last', inputs: ['c', 'last.w'], outputs: ['d'] });
    graph.node('Softmax', { name: 'choice', inputs: ['d'], outputs: ['y'] });
    graph.output('y', 'float32', ['batch', 16]);
  });

let reference: string;
const candidates: Record<string, string> = {};
const data = freshPath('.npz');
beforeAll(async () => {
  reference = await network();
  writeNpz(data, new Map([['x', noise([4, 16], 3, 4)]]));
  candidates.fp16 = (await converted(reference)).output;
});

async function bisected(candidate: string, ...words: readonly string[]) {
  const line = ['bisect', candidate, '--against', reference, '-o', freshPath('/out'), '--samples', '1'];
  const { exitCode, json } = await trtforge([...line, ...words, '--json']);
  expect([0, 4], JSON.stringify(json().error)).toContain(exitCode);
  return json<BisectResult>();
}

describe('the conversion that is searched', () => {
  test.each([
    [['--keep-nodes', '^(up|down)$'], 'conversion'],
    [['--convert-ops', 'Softmax'], 'nodes'],
    [['--max-reduction-depth', '8'], 'conversion'],
  ])('is that of %j', async (words, cause) => {
    const { convert, ...found } = await bisected(candidates.fp16!, ...words);
    expect(found).toMatchObject({ outcome: 'pass', cause });
    expect(convert?.replaceAll("'", '')).toContain(words.join(' '));
  });

  test('has operators of plug-ins in the types passed', async () => {
    const plugged = await modelFile(
      (graph) => {
        graph.input('x', 'float32', ['batch', 16]);
        graph.initializer('k', floats([], [60000]));
        graph.initializer('w', noise([16, 16], 0.3, 1));
        graph.node('MatMul', { name: 'first', inputs: ['x', 'w'], outputs: ['a'] });
        graph.node('FastGelu', { name: 'plug', domain: 'com.microsoft', inputs: ['a'], outputs: ['p'] });
        graph.node('Mul', { name: 'up', inputs: ['p', 'k'], outputs: ['b'] });
        graph.node('Div', { name: 'down', inputs: ['b', 'k'], outputs: ['y'] });
        graph.output('y', 'float32', ['batch', 16]);
      },
      { opsets: { 'com.microsoft': 1 } },
    );
    const [typed, config] = [freshPath('.typed.onnx'), freshPath('.json')];
    const types = ['--plugin-types', 'com.microsoft::FastGelu:fp16'];
    const made = await trtforge(['convert', plugged, '-o', typed, ...types]);
    expect(made.exitCode, made.err).toBe(0);
    writeFileSync(config, JSON.stringify({ 'plugin-types': types[1] }));
    const line = ['bisect', typed, '--against', plugged, '-o', freshPath('/out'), '--samples', '1'];
    const { json } = await trtforge([...line, '--config', config, '--json']);
    const { convert, ...found } = json<BisectResult>();
    expect(found).toMatchObject({ exitCode: 0, outcome: 'pass' });
    expect(convert).toContain(types.join(' '));
  });

  test('knows the largest values of its samples', async () => {
    const found = (limit: string) => bisected(candidates.fp16!, '--calibration', data, '--data-max', limit);
    for (const limit of ['5', '65504'])
      expect((await found(limit)).convert).toContain(`--data-max ${limit} --calibration ${data}`);
  });

  test('makes ranges by its method, keeps them, and has its type around them', async () => {
    const made = await trtforge([
      ...['convert', reference, '--precision', 'int8', '--calibration', data, '-o', freshPath('.q.onnx')],
      '--json',
    ]);
    expect(made.exitCode, made.err).toBe(0);
    const seen = freshPath('.seen');
    mkdirSync(seen);
    const cache = freshPath('.json');
    const words = [
      ...['--precision', 'int8', '--calibration', data, '--calibration-method', 'max'],
      ...['--calibration-cache', cache, '--high-precision', 'bf16', '--budget', '1'],
      ...['--check-command', `sh -c 'cp {} ${seen}/$(ls ${seen} | wc -l).onnx; exit 1'`],
    ];
    expect(await bisected(made.json<{ output: string }>().output, ...words)).toMatchObject({
      outcome: 'inconclusive',
    });
    expect(JSON.parse(readFileSync(cache, 'utf8')).identity).toMatchObject({ dtype: 'int8', method: 'max' });
    const dtypes = await Promise.all(
      readdirSync(seen).map(async (name) => (await trtforge(['inspect', join(seen, name), '--json'])).out),
    );
    expect(dtypes.filter((text) => text.includes('bfloat16'))).toHaveLength(1);
  });
});

describeWith('toolchain', 'engines that are searched', () => {
  const target = 'tensorrt-rtx:sm_89';
  /** By a command that takes what has no TF32. */
  async function searched(words: readonly string[], settings: object = {}) {
    const [config, folder, script] = [freshPath('.json'), freshPath('/out'), freshPath('.mjs')];
    writeFileSync(config, JSON.stringify(settings));
    writeFileSync(
      script,
      `import { readFileSync } from 'node:fs';
       const { identity } = JSON.parse(readFileSync(process.argv[2] + '.passport.json', 'utf8'));
       process.exit(identity.document.recipe.flags.includes('no-tf32') ? 0 : 1);`,
    );
    const line = [
      ...['bisect', reference, '--against', reference, '--target', target, '-o', folder, '--config', config],
      ...['--check-command', `${process.execPath} ${script} {}`, ...words, '--json'],
    ];
    const { exitCode, json } = await trtforge(line, {
      ...process.env,
      TENSORRT_CACHE_DIR: freshPath('/store'),
    });
    return {
      exitCode,
      result: json<BisectResult & { readonly error?: { readonly code: string } }>(),
      passport: () => readPassport(join(folder, 'candidate.engine')),
    };
  }

  test.each([
    [['--batch', '1/2/4'], {}],
    [['--dim', 'batch=1/2/4'], {}],
  ])('are built for %j', async (words) => {
    const { exitCode, result, passport } = await searched([
      ...words,
      '--builder-config',
      'optimization-level=1',
    ]);
    expect(exitCode, JSON.stringify(result)).toBe(0);
    expect(result.build).toContain('optimization-level=1');
    expect(passport().identity.document.recipe).toMatchObject({
      optimizationLevel: 1,
      profiles: [{ x: { max: [4, 16] } }],
    });
  });

  test('are kept, signed and asked for as a configuration has it', async () => {
    const [store, other, key] = [freshPath('/store'), freshPath('/store'), freshPath('.key')];
    for (const file of [key, `${key}-other`]) await trtforge(['cache', 'keygen', '-o', file]);
    const built = async (folder: string, settings: object) => {
      const { exitCode, result, passport } = await searched(['--batch', '1'], {
        'cache-dir': folder,
        ...settings,
      });
      expect(exitCode, JSON.stringify(result)).toBe(0);
      return passport().built.at;
    };
    const kept = (folder: string) =>
      existsSync(folder)
        ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
            name.endsWith('passport.json'),
          ).length
        : 0;
    const timing = freshPath('.timing');
    const first = await built(store, {
      'sign-key': key,
      toolchain: 'tensorrt-rtx-1.7.1.116',
      device: 0,
      'max-size': '1G',
      'timing-cache': timing,
      remote: 'none',
    });
    const two = kept(store);
    const trusting = (file: string) => ({ 'require-signature': true, 'trust-key': [file] });
    expect(await built(store, trusting(`${key}.pub`))).toBe(first);
    expect(await built(other, { 'cache-from': [store] })).toBe(first);
    expect(await built(freshPath('/store'), { 'no-cache': true })).not.toBe(first);
    const again = await built(store, { 'force-rebuild': true });
    expect(again).not.toBe(first);
    const signed = { ...trusting(`${key}-other.pub`), 'sign-key': `${key}-other` };
    expect(await built(store, signed)).not.toBe(again);
    const small = freshPath('/store');
    await built(small, { 'max-size': '1B' });
    expect(kept(small)).toBeLessThan(two);
    for (const [setting, code] of [
      [{ toolchain: 'none' }, 'TF_TOOLCHAIN_NOT_FOUND'],
      [{ plugin: ['none.so'] }, 'TF_FILE_NOT_FOUND'],
    ] as const)
      expect((await searched(['--batch', '1'], setting)).result.error?.code).toBe(code);
  });
});
