import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { writeNpy } from '../../../src/formats/tensor/npy.js';
import { tensorFrom } from '../../../src/formats/tensor/tensor.js';
import { compileFakeOnnxRuntime, fakeProviders } from '../../fakes/onnxruntime/library.js';
import { dynamicModel } from '../../native/tiny-models.js';
import { describeWith } from '../../support/needs.js';
import { trtforge as run } from '../../support/trtforge.js';
import { writeNet } from '../../support/written-net.js';

const trtforge = (...args: readonly string[]) => run(args, { ...process.env, NO_COLOR: '1' });

const folder = mkdtempSync(join(tmpdir(), 'trtforge-forge-command-'));
const model = dynamicModel(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('trtforge forge', () => {
  test('ends with the verdict and the path of the report; progress went to stderr', async () => {
    const root = join(folder, 'text');
    const { exitCode, out, err } = await trtforge(
      ...['forge', model, '--precision', 'fp16', '--skip', 'build,verify', '--run-root', root],
    );
    expect(exitCode).toBe(4);
    expect(out).toContain('2 of 2 floating-point nodes in FP16.');
    expect(out).toMatch(/^INCONCLUSIVE {2}/m);
    expect(out.trimEnd().split('\n').at(-1)).toBe(`report  ${join(root, 'report.html')}`);
    expect(err).toMatch(/✓ inspect/);
    expect(err).toMatch(/build skipped: --skip build/);
  });

  test('--json is one object: the result, with the error of a run that stopped', async () => {
    const root = join(folder, 'json');
    const open = join(folder, 'open.onnx');
    await writeNet(open, ['batch', 3, 'height', 'width']);
    const { exitCode, out } = await trtforge(
      'forge',
      open,
      '--target',
      'tensorrt-rtx',
      '--run-root',
      root,
      '--json',
    );
    const result = JSON.parse(out);
    expect(exitCode).toBe(result.exitCode);
    expect(result).toMatchObject({ schema: 'trtforge.forge/2', ok: false, command: 'forge', engine: null });
    expect(result.error.code).toMatch(/^TF_(PROFILE_MISSING|TOOLCHAIN_NOT_FOUND)$/);
    // What is missing on this machine is worth a report, what is wrongly asked is not.
    if (exitCode === 2) expect([result.report, existsSync(root)]).toEqual([null, false]);
    else expect(readFileSync(result.report, 'utf8')).toContain(result.error.code);
  });

  test.each([
    [['--skip', 'inspect'], '"inspect" is not a phase that can be skipped'],
    [['--precision', 'fp61'], 'fp61'],
    [['--tagret', 'tensorrt'], '--target'],
    [['--no-cache', '--force-rebuild'], 'contradict each other'],
    [['--workspace', '4X'], '"4X" is not a size'],
  ])('%j is rejected before any work', async (words, said) => {
    const root = join(folder, 'refused');
    const { exitCode, err, out } = await trtforge('forge', model, '--run-root', root, ...words);
    expect([exitCode, out]).toEqual([2, '']);
    expect(err).toContain(said);
    expect(existsSync(root)).toBe(false);
  });
});

describe('trtforge forge calibrates', () => {
  const written = (settings: string) => {
    const path = join(folder, 'calibration.yaml');
    writeFileSync(path, settings);
    return path;
  };
  const words = ['--precision', 'fp16', '--skip', 'build,verify', '--run-root', join(folder, 'calibrated')];

  test('where the configuration file states, on the GPU of --device', async () => {
    const [samples, log] = [join(folder, 'x.npy'), join(folder, 'calls')];
    writeNpy(samples, tensorFrom('float32', [2, 64], new Float32Array(128).fill(1)));
    await compileFakeOnnxRuntime();
    for (const [name, value] of Object.entries(fakeProviders('MatMul', log))) vi.stubEnv(name, value);
    const { exitCode } = await trtforge(
      ...['forge', model, ...words, '--calibration', samples, '--device', '1'],
      ...['--config', written('provider: cuda\nallow-fallback: true\n')],
    );
    vi.unstubAllEnvs();
    expect(exitCode).toBe(4);
    expect(readFileSync(log, 'utf8')).toContain('cuda device_id=1');
  });

  test('and a place is no error where nothing is calibrated', async () => {
    const { exitCode, out } = await trtforge(
      'forge',
      model,
      ...words,
      '--config',
      written('provider: cuda\n'),
    );
    expect(exitCode).toBe(4);
    expect(out).toMatch(/^INCONCLUSIVE {2}/m);
  });
});

describeWith('toolchain', 'trtforge forge with tensorrt-rtx', (libraries) => {
  test('ends with the paths of the engine and the report', async () => {
    const root = join(folder, 'whole');
    const words = ['--precision', 'fp16', '--target', 'tensorrt-rtx:sm_89', '--profile', 'x:1x64/8x64/32x64'];
    const { exitCode, out } = await trtforge(
      ...[
        'forge',
        model,
        ...words,
        '--toolchain',
        libraries,
        '--cache-dir',
        join(folder, 'store'),
        '--run-root',
        root,
      ],
    );
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^PASS {2}/m);
    const [engine, report] = out.trimEnd().split('\n').slice(-2);
    expect(engine).toMatch(/^engine {2}.*\/engines\/dynamic_.*\.engine$/);
    expect(existsSync(engine!.replace(/^engine {2}/, ''))).toBe(true);
    expect(report).toBe(`report  ${join(root, 'report.html')}`);
  });

  test('is BUILT where nothing was compared, with the batch of 1 that it chose', async () => {
    const root = join(folder, 'as-is');
    const words = ['--target', 'tensorrt-rtx:sm_89', '--toolchain', libraries, '--run-root', root];
    const { exitCode, out } = await trtforge('forge', model, ...words, '--cache-dir', join(folder, 'store'));
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^BUILT {2}/m);
    expect(out).toMatch(/^Profile: x:1x64, /m);
    expect(readFileSync(join(root, 'report.html'), 'utf8')).toContain('class="verdict built"');
  });
});
