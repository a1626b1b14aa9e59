import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { modelFamilies } from '../../../examples/models/catalogue.js';
import { describeWith, found } from '../../support/needs.js';
import { trtforge } from '../../support/trtforge.js';

/** As far as these tests read results. */
interface Result {
  readonly findings: readonly { readonly code: string; readonly severity: string }[];
  readonly models: readonly { readonly name: string; readonly sequences: unknown }[];
}

const folder = mkdtempSync(join(tmpdir(), 'trtforge-served-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (...names: readonly string[]) => join(folder, ...names);

/** Engines of tensorrt-rtx, exported by force: the stub serves their configurations in the place of Triton's back end. */
describeWith('triton', 'repositories of the examples on the real server', (server) => {
  const environment = {
    ...process.env,
    PATH: `${server}${delimiter}${process.env.PATH}`,
  };
  const run = async (...words: readonly string[]) => {
    const { exitCode, json } = await trtforge([...words, '--json'], environment);
    return { exitCode, answer: json<Result>() };
  };
  const build = async (model: string, name: string, ...options: readonly string[]) => {
    const target = ['--target', 'tensorrt-rtx:sm_89', '--no-cache', '--known-answer'];
    const { exitCode } = await run('build', model, '-o', at(name), ...target, ...options);
    expect(exitCode).toBe(0);
  };
  const exported = async (...words: readonly string[]) => {
    const { exitCode } = await run('triton', 'export', ...words, '-o', at('repo'), '--force');
    expect(exitCode).toBe(0);
  };

  beforeAll(async () => {
    if (found('toolchain') === undefined) throw new Error('these tests build engines of tensorrt-rtx');
    const plain = { seed: 1, external: false };
    mkdirSync(at('speech'));
    await modelFamilies['streaming-encoder']!.write('tiny', at('streaming'), plain);
    await modelFamilies.parakeet!.write('tiny', at('speech'), plain);
    const contract = at('streaming', 'encoder_streaming.contract.json');
    const images = ['--profile', 'images:1x3x256x256/2x3x256x256/4x3x256x256'];
    await build('examples/detector/detector.onnx', 'detector.engine', ...images);
    await build(at('streaming', 'encoder_streaming.onnx'), 'streaming.engine', '--profile-from', contract);
    for (const [name, profile] of [
      ['encoder', 'audio_signal:1x128x48/1x128x160/1x128x320,length:1'],
      ['predictor', 'y:1x1,h:2x1x16,c:2x1x16'],
      ['joint', 'encoder_output:1x32x1,predictor_output:1x16x1'],
    ] as const)
      await build(at('speech', `${name}.onnx`), `${name}.engine`, '--profile', profile);
    await exported(at('detector.engine'), '--name', 'detector', '--delay', '500us');
    await exported(at('streaming.engine'), '--name', 'streaming', '--contract', contract);
    const parts = ['encoder', 'predictor', 'joint'].map((name) => at(`${name}.engine`));
    await exported(...parts, '--bundle', at('speech', 'model_meta.json'), '--name', 'speech');
  });

  it('nothing but the kind of engine is found, and the server takes, warms up and answers all', async () => {
    const check = await run('triton', 'check', at('repo'));
    const { findings } = check.answer;
    expect([
      ...new Set(findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code)),
    ]).toEqual(['plan-rtx']);
    const { exitCode, answer } = await run('triton', 'try', at('repo'));
    expect(answer).toMatchObject({ outcome: 'pass', server: { answeredBy: 'stub' }, skipped: [] });
    expect(exitCode).toBe(0);
    const { models } = answer;
    expect(models.map(({ name }) => name)).toEqual([
      'detector',
      'speech_encoder',
      'speech_joint',
      'speech_predictor',
      'streaming',
    ]);
    expect(models.at(-1)?.sequences).toEqual({ outcome: 'pass', reasons: [] });
  });

  /** Each is refused by the server or served wrongly; none may pass the check. */
  it.each<[string, string, (config: string) => string]>([
    ['detector', 'batch-above-profile', (config) => config.replace('max_batch_size: 4', 'max_batch_size: 8')],
    [
      'detector',
      'preferred-above-max',
      (config) => config.replace(/preferred_batch_size: \d+/, 'preferred_batch_size: 16'),
    ],
    ['detector', 'name-differs', (config) => config.replace('name: "detector"', 'name: "other"')],
    [
      'streaming',
      'state-also-input',
      (config) => `${config}input { name: "cache_last_time" data_type: TYPE_FP32 dims: [ 2, 32, 4 ] }\n`,
    ],
    ['streaming', 'config-unreadable', (config) => `${config}nam: "x"\n`],
  ])('%s with %s is named before the server is started', async (model, code, change) => {
    const path = at(`changed ${model} ${code}`);
    cpSync(at('repo', model), join(path, model), { recursive: true });
    const file = join(path, model, 'config.pbtxt');
    const before = readFileSync(file, 'utf8');
    const after = change(before);
    expect(after).not.toBe(before);
    writeFileSync(file, after);
    const { exitCode, answer } = await run('triton', 'check', path);
    const { findings } = answer;
    expect(findings.filter(({ severity }) => severity === 'error').map(({ code }) => code)).toContain(code);
    expect(exitCode).toBe(1);
  });
});
