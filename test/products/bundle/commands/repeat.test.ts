import { describe, expect, test } from 'vitest';
import { defineCommand } from '../../../../src/cli/command.js';
import { forgeOptions } from '../../../../src/cli/commands/forge.js';
import { storeWishes } from '../../../../src/cli/options/store.js';
import { runProgram } from '../../../../src/cli/program.js';
import { bundleWords } from '../../../../src/products/bundle/bundle-args.js';
import type { BundleRequest } from '../../../../src/products/bundle/bundle-request.js';
import { bundleWishes } from '../../../../src/products/bundle/commands/options.js';
import { recordedConsole } from '../../../support/console.js';

/** Reads the words of a bundle's command back into wishes, through the real option table. */
async function readBack(words: readonly string[]): Promise<Omit<BundleRequest, 'check' | 'smoke'>> {
  let read: Omit<BundleRequest, 'check' | 'smoke'> | undefined;
  const probe = defineCommand({
    name: 'forge',
    summary: '',
    arguments: [],
    options: forgeOptions,
    run: async (_, options) => {
      read = { ...bundleWishes(options, options.runRoot), ...storeWishes(options), builder: options.builder };
      return { schema: 'trtforge.probe/1' };
    },
    render: () => {},
  });
  const recorded = recordedConsole();
  const entries = [{ name: 'forge', summary: '', load: async () => probe }];
  const program = { name: 'trtforge', version: '0', summary: '', entries };
  const exitCode = await runProgram(program, words.slice(1), recorded.console);
  expect([exitCode, recorded.err()]).toEqual([0, '']);
  return read!;
}

describe('the command that repeats a bundle', () => {
  test('is short where nothing was asked for', () => {
    const request = { meta: 'out/model_meta.json', outdir: 'engines' };
    const words = 'forge --meta out/model_meta.json --outdir engines --precision as-is'.split(' ');
    expect(bundleWords({ ...request, check: { seed: 1, samples: 2 } })).toEqual([
      'trtforge',
      ...words,
      ...['--seed', '1', '--samples', '2'],
    ]);
    expect(bundleWords(request)).toEqual(['trtforge', ...words, '--skip', 'verify']);
    expect(bundleWords({ ...request, smoke: 'engine' }).slice(0, 2)).toEqual(['trtforge', 'build']);
  });

  test('asks for the same again: components, ranges, folders, builder, memory', async () => {
    const request: BundleRequest = {
      meta: 'my out/model_meta.json',
      outdir: 'my engines',
      onnxDir: 'elsewhere',
      precision: 'fp16',
      target: { product: 'tensorrt-rtx', computeCapabilities: [89, 120] },
      builder: 'trtexec',
      store: false,
      timingCache: null,
      only: ['encoder', 'joint'],
      profilesFile: 'profiles.yaml',
      ranges: {
        batch: { max: 4 },
        encoderTime: { min: 8, opt: 16, max: 512 },
        predictorTokens: { max: 3 },
        jointTime: { opt: 9 },
        jointTokens: { min: 2 },
      },
      device: 1,
      plugins: ['my plugin.so'],
      allowHostCode: true,
      weightBudget: 4096,
      stage: true,
      keepTemp: true,
      memoryBudget: 12_345_678,
      check: { seed: 3, samples: 5 },
    };
    const { check: _, ...wishes } = request;
    expect(await readBack(bundleWords(request))).toMatchObject(wishes);
  });
});
