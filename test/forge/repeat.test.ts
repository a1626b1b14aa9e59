import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { defineCommand } from '../../src/cli/command.js';
import { text } from '../../src/cli/option.js';
import { runProgram } from '../../src/cli/program.js';
import { buildOptions, buildWishes } from '../../src/commands/build-options.js';
import { comparisonOptions, comparisonWishes } from '../../src/commands/comparison-options.js';
import { storeOptions, storeWishes } from '../../src/commands/store-options.js';
import { defaultRecipe } from '../../src/engine/recipe.js';
import type { ForgeOptions } from '../../src/forge/options.js';
import { repeatCommands } from '../../src/forge/repeat.js';
import { runRootAt } from '../../src/forge/run-root.js';
import { observeOnOrt } from '../../src/runtime/calibrate.js';
import { recordedConsole } from '../support/console.js';

/** The words of a command line as a real shell splits them. */
function shellWords(commandLine: string): readonly string[] {
  const script = `set -- ${commandLine}\nprintf '%s\\0' "$@"`;
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
}

/** Reads a `trtforge forge` or `build` line back into wishes, through the shell and the real option tables. */
async function readBack(commandLine: string): Promise<ForgeOptions> {
  let read: ForgeOptions | undefined;
  const probe = defineCommand({
    name: shellWords(commandLine)[1]!,
    summary: '',
    arguments: [{ name: 'MODEL', describe: '' }],
    options: {
      ...buildOptions,
      ...storeOptions,
      ...comparisonOptions,
      runRoot: text({ flags: '--run-root <folder>', describe: '' }),
    },
    run: async ([model = ''], options) => {
      const verify = comparisonWishes(options);
      read = { ...buildWishes(model, options), ...storeWishes(options), verify, runRoot: options.runRoot };
      return { schema: 'trtforge.probe/1' };
    },
    render: () => {},
  });
  const recorded = recordedConsole();
  const entries = [{ name: probe.name, summary: '', load: async () => probe }];
  const program = { name: 'trtforge', version: '0', summary: '', entries };
  const exitCode = await runProgram(program, shellWords(commandLine).slice(1), recorded.console);
  expect([exitCode, recorded.err()]).toEqual([0, '']);
  return read!;
}

const commandOf = (options: ForgeOptions, step: RegExp): string =>
  repeatCommands(options, runRootAt('runs/it is here'), null).find((each) => step.test(each.step))!.command;

describe('the commands that repeat a run', () => {
  test('a plain run is a plain command', () => {
    const options = { model: 'm.onnx', precision: 'fp16', target: 'tensorrt-rtx:sm_89' } as const;
    expect(commandOf(options, /whole way/)).toBe(
      "trtforge forge m.onnx --precision fp16 --target tensorrt-rtx:sm_89 --run-root 'runs/it is here'",
    );
    expect(commandOf(options, /Convert/)).toBe(
      "trtforge convert m.onnx --precision fp16 -o 'runs/it is here/model/m.fp16.onnx'",
    );
  });

  test('everything that decides the engine comes back the same through a shell and the option table', async () => {
    const options: ForgeOptions = {
      model: "models/it's «odd» $(rm) `x`.onnx",
      precision: 'bf16',
      target: { product: 'tensorrt-rtx', computeCapabilities: [89, 120] },
      toolchain: 'tensorrt-rtx-1.7.1.116',
      weaklyTyped: true,
      conversion: {
        keepNodes: [/^\/head\/'a b'$/u, /x|y/u],
        keepOps: new Set(['Softmax', 'com.microsoft::Gelu']),
        convertOps: new Set(['Exp']),
        ioTypes: 'convert',
        initMax: 30_000.5,
        dataMax: 512,
        maxReductionDepth: 4096,
        calibration: { samples: ['a sample.npz', "another's.npz"], observe: observeOnOrt },
      },
      profiles: [
        new Map([
          ['x', { min: [1, 3], opt: [2, 3], max: [4, 3], values: false }],
          ['odd, name', { min: [], opt: [], max: [], values: false }],
          ['shape', { min: [1], opt: [2], max: [3], values: true }],
        ]),
        new Map([['x', { min: [8, 3], opt: [8, 3], max: [8, 3], values: false }]]),
      ],
      settings: {
        memoryPools: { ...defaultRecipe.memoryPools, workspace: 4 * 2 ** 30, dlaLocalDram: 12345 },
        optimizationLevel: 5,
        maxAuxStreams: 0,
        avgTimingIterations: 4,
        tilingOptimizationLevel: 'moderate',
        maxTactics: 7,
        l2LimitForTiling: 1_000_001,
        profilingVerbosity: 'detailed',
        hardwareCompatibility: 'ampere-plus',
        runtimePlatform: 'windows-amd64',
        flags: ['refit', 'no-tf32'],
        tacticSources: ['cublas'],
        previewFeatures: ['some-feature'],
      },
      plugins: ['lib/my plugin.so'],
      modelName: 'odd name',
      modelVersion: 'v1',
      store: '/some/where else',
      forceRebuild: true,
      timingCache: null,
      runRoot: 'runs/it is here',
      verify: {
        seed: 7,
        samples: 2,
        ranges: [
          { name: null, low: -1, high: 1 },
          { name: 'odd, name', low: 0, high: 255 },
        ],
        files: [{ name: 'x', path: 'a b.npy' }],
        atol: [{ name: 'odd: out', value: 1e-7 }],
        rtol: [{ name: null, value: 0.01 }],
        threads: 2,
      },
    };
    const { verify: _, runRoot: __, ...built } = await readBack(commandOf(options, /Build/));
    const { verify: ___, runRoot: ____, ...wished } = options;
    expect(built).toEqual(wished);
    expect(await readBack(commandOf(options, /whole way/))).toEqual(options);
  });

  test('a run without a store says so', async () => {
    expect(await readBack(commandOf({ model: 'm.onnx', store: false }, /Build/))).toMatchObject({
      store: false,
    });
  });

  test('what was left out is not repeated as a step', () => {
    const steps = repeatCommands({ model: 'm.onnx', skip: ['build'] }, runRootAt('r'), null).map(
      ({ step }) => step,
    );
    expect(steps.some((step) => /Build|Convert/.test(step))).toBe(false);
    expect(commandOf({ model: 'm.onnx', skip: ['build'] }, /whole way/)).toContain('--skip build');
  });
});
