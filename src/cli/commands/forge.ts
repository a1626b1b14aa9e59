import { TrtforgeError } from '../../errors.js';
import { forge } from '../../forge/forge.js';
import { type ForgeOptions, type SkippablePhase, skippablePhases } from '../../forge/options.js';
import { bundleOptions, bundleWishes, isBundle } from '../../products/bundle/commands/options.js';
import { renderBundle } from '../../products/bundle/commands/text.js';
import type { BundleReport } from '../../products/bundle/report-schema.js';
import type { ForgeResult } from '../../report/result.js';
import {
  accuracySentence,
  conversionSentence,
  engineSentence,
  outcomeWord,
  speedSentence,
} from '../../report/sentences.js';
import { defineCommand, type TextOutput } from '../command.js';
import { type OptionValues, option, text } from '../option.js';
import { builderOption, buildOptions, buildWishes } from '../options/build.js';
import { comparisonOptions, comparisonWishes } from '../options/comparison.js';
import { loadOptions, loadWishes } from '../options/engine.js';
import { storeOptions, storeWishes } from '../options/store.js';
import { limited, timeoutOption } from '../options/timeout.js';
import { splitAtCommas } from '../values.js';

export const forgeOptions = {
  ...buildOptions,
  ...storeOptions,
  ...builderOption,
  ...comparisonOptions,
  ...loadOptions,
  ...bundleOptions,
  ...timeoutOption,
  runRoot: text({
    flags: '--run-root <folder>',
    describe: 'where report, engine, typed model and logs go (default: runs/MODEL-PRECISION)',
    writes: true,
    aliases: ['--outdir'],
  }),
  skip: option({
    flags: '--skip <phases>',
    describe: 'leave out build (no TensorRT is needed then), verify, bench, or several by comma',
    parse: parsePhases,
    repeat: true,
  }),
};

/** The options as the forge room takes them, for a single model. Throws TF_USAGE for options that contradict each other. */
export const forgeWishes = (model: string, given: OptionValues<typeof forgeOptions>): ForgeOptions => ({
  ...buildWishes(model, given),
  ...storeWishes(given),
  builder: given.builder,
  runRoot: given.runRoot,
  skip: given.skip.flat(),
  verify: comparisonWishes(given),
  ...loadWishes(given),
});

export const command = defineCommand({
  name: 'forge',
  summary: 'from an ONNX file to a named, checked engine and its report',
  arguments: [{ name: 'MODEL', describe: 'an ONNX model; none with --meta', optional: true }],
  examples: [
    'trtforge forge resnet50.onnx --precision fp16 --target tensorrt-rtx:sm_89',
    "trtforge forge encoder.onnx --precision fp16 --profile 'ids:1x16/8x128/32x512' --run-root runs/encoder",
    'trtforge forge model.onnx --precision bf16 --skip build',
    'trtforge forge --meta out/model_meta.json --outdir engines --precision fp16',
  ],
  options: forgeOptions,
  run: limited(async ([model], options, context): Promise<ForgeResult | BundleReport> => {
    const skip = options.skip.flat();
    if (isBundle(model, options)) {
      refuseSkippedBuild(skip);
      const { seed, samples } = comparisonWishes(options);
      const { forgeBundle } = await import('../../products/bundle/forge-bundle.js');
      return forgeBundle(
        {
          ...bundleWishes(options, options.runRoot),
          ...storeWishes(options),
          builder: options.builder,
          verbose: context.verbose ?? false,
          check: skip.includes('verify') ? undefined : { seed, samples },
        },
        context,
      );
    }
    return forge({ ...forgeWishes(model ?? '', options), verbose: context.verbose ?? false }, context);
  }),
  render: (result: ForgeResult | BundleReport, output) =>
    result.schema === 'trtforge.bundle/1' ? renderBundle(result, output) : render(result, output),
});

function refuseSkippedBuild(skip: readonly SkippablePhase[]): void {
  if (!skip.includes('build')) return;
  throw new TrtforgeError('TF_USAGE', 'A bundle is built; --skip build leaves nothing of --meta to do.', {
    remedy: 'Leave --skip build out, or forge the models one by one.',
  });
}

function parsePhases(list: string): readonly SkippablePhase[] {
  return splitAtCommas(list).map((name) => {
    const phase = skippablePhases.find((candidate) => candidate === name);
    if (phase !== undefined) return phase;
    throw new TrtforgeError('TF_USAGE', `«${name}» is not a phase that can be left out.`, {
      remedy: `Phases that can be left out are ${skippablePhases.join(', ')}.`,
    });
  });
}

function render(result: ForgeResult, { line, colors }: TextOutput): void {
  const { verdict, conversion, build, verification, error } = result;
  const tone = { pass: colors.green, fail: colors.red, inconclusive: colors.yellow, error: colors.red }[
    verdict.outcome
  ];
  if (conversion !== null) line(conversionSentence(conversion));
  if (build !== null) line(engineSentence(build));
  if (verification !== null) line(accuracySentence(verification));
  if (result.engineVerification !== null) line(`The engine: ${accuracySentence(result.engineVerification)}`);
  if (result.bench !== null) line(speedSentence(result.bench));
  line();
  line(
    `${tone(colors.bold(outcomeWord[verdict.outcome].toUpperCase()))}  ${verdict.headline}${error === null ? '' : ` ${colors.dim(error.code)}`}`,
  );
  for (const reason of verdict.reasons) line(`  ${colors.dim('·')} ${reason}`);
  if (error !== null) line(`  ${colors.dim('→')} ${error.remedy}`);
  line();
  if (result.engine !== null) line(`engine  ${result.engine}`);
  if (result.report !== null) line(`report  ${result.report}`);
}
