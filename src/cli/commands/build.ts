import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { formatBytes, formatMs } from '../../base/text/quantity.js';
import { type EngineExtension, engineExtensions } from '../../engines/identity/engine-name.js';
import { buildOrLoad } from '../../engines/store/build-or-load.js';
import { buildResult } from '../../engines/store/build-result.js';
import { TrtforgeError } from '../../errors.js';
import {
  type BundleOptionValues,
  bundleOptions,
  bundleWishes,
  isBundle,
} from '../../products/bundle/commands/options.js';
import { renderBundle } from '../../products/bundle/commands/text.js';
import type { BundleReport } from '../../products/bundle/report-schema.js';
import type { BuildReport } from '../../quality/explain/build-report-schema.js';
import { explaining } from '../../quality/explain/failure.js';
import { defineCommand, type TextOutput } from '../command.js';
import { choice, type OptionValues, text } from '../option.js';
import { builderOption, buildOptions, buildWishes } from '../options/build.js';
import { loadOptions, loadOptionsGiven } from '../options/engine.js';
import { storeOptions, storeWishes } from '../options/store.js';
import { limited, timeoutOption } from '../options/timeout.js';
import { renderIssues } from './issue-text.js';
import { missLines } from './miss-text.js';

export const command = defineCommand({
  name: 'build',
  summary: 'build an engine, or find it in the store',
  arguments: [{ name: 'MODEL', describe: 'an ONNX model; none with --meta', optional: true }],
  examples: [
    'trtforge build resnet50.onnx --precision fp16 --target tensorrt-rtx:sm_89',
    "trtforge build encoder.onnx --profile 'ids:1x16/8x128/32x512,mask:1x16/8x128/32x512'",
    "trtforge build m.onnx --profile 'x:1x80x1/1x80x100/1x80x500' --profile 'x:8x80x1/8x80x100/8x80x500'",
    'trtforge build model.onnx -o model.engine --workspace 4G --json',
    'trtforge build --meta out/model_meta.json --outdir engines --precision fp16',
  ],
  options: {
    ...buildOptions,
    output: text({
      flags: '-o, --output <file>',
      describe: 'put the engine there, its passport beside it (default: it stays in the store)',
      writes: ['a TensorRT plan'],
      aliases: ['--saveEngine'],
    }),
    extension: choice({
      flags: '--extension <ext>',
      describe: 'how the readable name ends',
      choices: engineExtensions,
      default: 'engine',
    }),
    ...storeOptions,
    ...builderOption,
    ...loadOptions,
    ...bundleOptions,
    ...timeoutOption,
    outdir: text({
      flags: '--outdir <folder>',
      describe: 'with --meta: where engines, logs and the report go',
      writes: true,
    }),
  },
  run: limited(async ([path], options, context): Promise<BuildReport | BundleReport> => {
    const { emit, signal, environment } = context;
    refuseMixedPlaces(options);
    if (isBundle(path, options)) {
      const { forgeBundle } = await import('../../products/bundle/forge-bundle.js');
      return forgeBundle(
        {
          ...bundleWishes(options, options.outdir),
          ...storeWishes(options),
          builder: options.builder,
          verbose: context.verbose ?? false,
          // A build alone runs nothing but the engines it has built.
          smoke: 'engine',
        },
        context,
      );
    }
    refuseLoading(options);
    const model = path ?? '';
    const wishes = {
      ...buildWishes(model, options),
      extension: options.extension,
      ...storeWishes(options),
      output: options.output,
      builder: options.builder,
      verbose: context.verbose ?? false,
    };
    const { result, issues } = await explaining(
      (heard) => buildOrLoad(wishes, { emit: heard, signal, environment }),
      {
        emit,
        model,
        // Of what is found in the store it was told when it was built.
        built: ({ source, passport }) => (source === 'built' ? passport.identity.document.target : null),
      },
    );
    return { ...buildResult(result), issues: [...issues] };
  }),
  render: (result: BuildReport | BundleReport, output) =>
    result.schema === 'trtforge.bundle/1' ? renderBundle(result, output) : render(result, output),
});

/** One model is built and nothing run; of a bundle every engine is run once. */
function refuseLoading(options: OptionValues<typeof loadOptions>): void {
  const [wrong] = loadOptionsGiven(options);
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${wrong} is for running an engine; build runs those of a bundle only.`,
    {
      remedy: 'Leave it out here, and give it to what runs the engine: run, bench, verify, forge.',
    },
  );
}

interface Places extends Pick<BundleOptionValues, 'meta'> {
  readonly output: string | undefined;
  readonly outdir: string | undefined;
  readonly extension: EngineExtension;
}

/** One engine goes to a file, a bundle to a folder. */
function refuseMixedPlaces({ meta, output, outdir, extension }: Places): void {
  if (meta === undefined && outdir !== undefined)
    throw new TrtforgeError('TF_USAGE', '--outdir is for bundles, and there is no --meta.', {
      remedy: 'Say where one engine goes with -o FILE.',
    });
  if (meta !== undefined && (output !== undefined || extension !== 'engine'))
    throw new TrtforgeError('TF_USAGE', 'A bundle has several engines, and -o or --extension is about one.', {
      remedy: 'Say the folder with --outdir; its engines are COMPONENT.engine.',
    });
  if (output !== undefined && existsSync(output) && statSync(output).isDirectory())
    throw new TrtforgeError('TF_USAGE', `-o names the engine's file, and ${output} is a folder.`, {
      remedy: `For example: -o ${join(output, 'model.engine')}`,
    });
}

function render(result: BuildReport, output: TextOutput): void {
  const { bold, dim, green, yellow } = output.colors;
  const { lookupMs, waitMs, remoteMs, buildMs } = result.timings;
  const how =
    result.source === 'built'
      ? `built in ${formatMs(buildMs)}`
      : `found in the ${result.source} store in ${formatMs(lookupMs + waitMs + remoteMs)}`;
  output.line(`${bold(result.name)}  ${green(how)}  ${formatBytes(result.bytes)}`);
  output.line(`  engine    ${result.readablePath ?? result.engine}`);
  output.line(`  passport  ${result.passport}`);
  output.line(`  identity  ${result.identity}`);
  output.line(`  for       ${result.target}, ${result.library}, ${result.precision}`);
  for (const miss of result.why) for (const line of missLines(miss)) output.line(dim(`  ${line}`));
  for (const warning of result.warnings) output.line(`${yellow('warning')} ${warning}`);
  renderIssues(
    result.issues.filter(({ severity }) => severity !== 'note'),
    output,
  );
}
