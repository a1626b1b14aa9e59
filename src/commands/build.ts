import { defineCommand, type TextOutput } from '../cli/command.js';
import { choice, flag, text } from '../cli/option.js';
import { engineExtensions } from '../engine/engine-name.js';
import { TrtforgeError } from '../errors.js';
import { formatBytes, formatMs } from '../report/quantity.js';
import { buildOrLoad } from '../store/build-or-load.js';
import { type BuildResult, buildResult } from '../store/build-result.js';
import { buildOptions, buildWishes } from './build-options.js';
import { missLines } from './miss-text.js';

export const command = defineCommand({
  name: 'build',
  summary: 'build an engine, or find it in the store',
  arguments: [{ name: 'MODEL', describe: 'an ONNX model' }],
  examples: [
    'trtforge build resnet50.onnx --precision fp16 --target tensorrt-rtx:sm_89',
    "trtforge build encoder.onnx --profile 'ids:1x16/8x128/32x512,mask:1x16/8x128/32x512'",
    "trtforge build m.onnx --profile 'x:1x80x1/1x80x100/1x80x500' --profile 'x:8x80x1/8x80x100/8x80x500'",
    'trtforge build model.onnx -o model.engine --workspace 4G --json',
  ],
  options: {
    ...buildOptions,
    output: text({
      flags: '-o, --output <file>',
      describe: 'put the engine there, its passport beside it (default: it stays in the store)',
      aliases: ['--saveEngine'],
    }),
    extension: choice({
      flags: '--extension <ext>',
      describe: 'how the readable name ends',
      choices: engineExtensions,
      default: 'engine',
    }),
    cacheDir: text({
      flags: '--cache-dir <folder>',
      describe: 'the engine store (default: ~/.cache/trtforge/engines)',
      env: 'TENSORRT_CACHE_DIR',
    }),
    noCache: flag({ flags: '--no-cache', describe: 'neither ask the store nor keep the engine there' }),
    forceRebuild: flag({
      flags: '--force-rebuild',
      describe: 'build even though the store has the engine, and replace it there',
    }),
    timingCache: text({
      flags: '--timing-cache <file>',
      describe: 'a file of measured kernel times to use and extend; none for none',
      default: 'auto',
      aliases: ['--timingCacheFile'],
    }),
  },
  run: async ([model = ''], options, { emit, signal, environment }): Promise<BuildResult> => {
    if (options.noCache && options.forceRebuild) {
      throw new TrtforgeError('TF_USAGE', '--no-cache and --force-rebuild are given together.', {
        remedy:
          '--no-cache alone always builds and keeps nothing; --force-rebuild replaces what the store has.',
      });
    }
    const obtained = await buildOrLoad(
      {
        ...buildWishes(model, options),
        extension: options.extension,
        timingCache: options.timingCache === 'none' ? null : options.timingCache,
        store: options.noCache ? false : options.cacheDir,
        forceRebuild: options.forceRebuild,
        output: options.output,
      },
      { emit, signal, environment },
    );
    return buildResult(obtained);
  },
  render,
});

function render(result: BuildResult, output: TextOutput): void {
  const { bold, dim, green, yellow } = output.colors;
  const { lookupMs, waitMs, buildMs } = result.timings;
  const how =
    result.source === 'built'
      ? `built in ${formatMs(buildMs)}`
      : `found in the ${result.source} store in ${formatMs(lookupMs + waitMs)}`;
  output.line(`${bold(result.name)}  ${green(how)}  ${formatBytes(result.bytes)}`);
  output.line(`  engine    ${result.readablePath ?? result.engine}`);
  output.line(`  passport  ${result.passport}`);
  output.line(`  identity  ${result.identity}`);
  output.line(`  for       ${result.target}, ${result.library}, ${result.precision}`);
  for (const miss of result.why) for (const line of missLines(miss)) output.line(dim(`  ${line}`));
  for (const warning of result.warnings) output.line(`${yellow('warning')} ${warning}`);
}
