import { type OptionValues, valuesOf } from '../../base/options/option.js';
import { splitAtCommas } from '../../base/options/readers.js';
import { originText, type ProfileOrigin } from '../../engines/builder/result.js';
import { TrtforgeError } from '../../errors.js';
import { type ForgePlan, forge, planForge } from '../../forge/forge.js';
import {
  type ForgeOptions,
  forgeOptions as requestOptions,
  type SkippablePhase,
  skippablePhases,
} from '../../forge/options.js';
import { verifyHeadline } from '../../quality/verify/headline.js';
import type { ForgeResult } from '../../report/forge-result.js';
import {
  conversionSentence,
  engineSentence,
  missLines,
  nextOf,
  outcomeWord,
  priceTable,
  speedSentence,
} from '../../report/sentences.js';
import { onlyLoadOptions } from '../../tensorrt/trtexec/options.js';
import {
  type CommandContext,
  defineCommand,
  searchesOf,
  sectionsOfProducts,
  type TextOutput,
} from '../command.js';
import { advanced, inConfig, option } from '../option.js';
import {
  builderOption,
  buildOptions,
  buildRequest,
  configOnly,
  storeOptions,
  withProfileFrom,
} from '../options/build.js';
import { comparisonOptions, comparisonOptionsOf } from '../options/comparison.js';
import { engineSteps, resolvedOf } from '../options/dry-run.js';
import { limited, timeoutOption } from '../options/timeout.js';
import { type Plan, step } from '../plan.js';
import { messageLines, renderWarnings, table } from '../text.js';

export const forgeOptions = {
  runRoot: requestOptions.runRoot,
  ...buildOptions,
  weaklyTyped: inConfig(buildOptions.weaklyTyped),
  skip: option({
    flags: '--skip <phases>',
    describe: 'leave out build (no TensorRT is needed then), verify, bench, or several by comma',
    parse: parsePhases,
    repeat: true,
  }),
  heal: requestOptions.heal,
  ...comparisonOptions,
  ...advanced({
    seed: comparisonOptions.seed,
    samples: comparisonOptions.samples,
    preprocess: comparisonOptions.preprocess,
    imgsz: comparisonOptions.imgsz,
    atol: comparisonOptions.atol,
    rtol: comparisonOptions.rtol,
    workspace: buildOptions.workspace,
  }),
  threads: inConfig(comparisonOptions.threads),
  ranges: inConfig(comparisonOptions.ranges),
  ...storeOptions,
  ...builderOption,
  ...configOnly(onlyLoadOptions),
  ...timeoutOption,
};

/** The options as the forge room takes them. Throws TF_USAGE for options that contradict each other, and what reading profiles throws. */
const forgeRequest = (
  model: string,
  options: OptionValues<typeof forgeOptions>,
  context: CommandContext,
): ReturnType<typeof withProfileFrom<ForgeOptions>> =>
  withProfileFrom(
    {
      ...buildRequest(model, options),
      runRoot: options.runRoot,
      skip: options.skip.flat(),
      heal: options.heal,
      verify: comparisonOptionsOf(options),
      ...valuesOf(onlyLoadOptions, options),
      verbose: context.verbose ?? false,
    },
    options,
    context,
    1,
  );

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model' }],
  examples: [
    'trtforge forge resnet50.onnx --precision fp16 --target tensorrt-rtx:sm_89',
    'trtforge forge model.onnx --precision int8 --calibration samples.npz',
  ],
  options: forgeOptions,
  schema: async () => (await import('../../report/forge-result.js')).forgeResultSchema,
  run: limited(async ([model = ''], options, context): Promise<ForgeResult> => {
    const { request, profileFrom } = await forgeRequest(model, options, context);
    const sections = await sectionsOfProducts(context.products);
    return forge(request, { ...context, profileFrom, sections, ...searchesOf(context.products) });
  }),
  plan: async ([model = ''], options, context) => {
    const { request, profileFrom } = await forgeRequest(model, options, context);
    return stepsOf(model, await planForge(request, context), profileFrom);
  },
  render,
});

/** Phases, the build among them in the steps that it takes. */
const stepsOf = (
  model: string,
  { runRoot, engine, phases }: ForgePlan,
  profileFrom: readonly ProfileOrigin[],
): Plan => ({
  steps: phases.flatMap(({ name, skipped }) => {
    if (name === 'build' && engine !== null) return engineSteps(engine.decided, engine);
    return [step(name, name === 'report' ? runRoot : model, { skipped })];
  }),
  resolved: { ...(engine === null ? { model } : resolvedOf(engine.decided)), profileFrom, runRoot },
});

function parsePhases(list: string): readonly SkippablePhase[] {
  return splitAtCommas(list).map((name) => {
    const phase = skippablePhases.find((candidate) => candidate === name);
    if (phase !== undefined) return phase;
    throw new TrtforgeError('TF_USAGE', `"${name}" is not a phase that can be skipped.`, {
      remedy: `Phases that can be skipped are ${skippablePhases.join(', ')}.`,
    });
  });
}

function render(result: ForgeResult, output: TextOutput): void {
  const { line, colors } = output;
  const { verdict, conversion, build, verification, error } = result;
  const tone = {
    pass: colors.green,
    fail: colors.red,
    inconclusive: colors.yellow,
    built: colors.cyan,
    error: colors.red,
  }[verdict.outcome];
  line(
    `${tone(colors.bold(outcomeWord[verdict.outcome].toUpperCase()))}  ${verdict.headline}${error === null ? '' : ` ${colors.dim(error.code)}`}`,
  );
  for (const reason of verdict.reasons) messageLines(`  ${colors.dim('·')}`, reason, output);
  if (error !== null) line(`  ${colors.dim('→')} ${error.remedy}`);
  for (const next of nextOf(result)) line(`${colors.dim('Next:')} ${next}`);
  line();
  if (result.heal !== null) {
    const { columns, rows } = priceTable(result.heal);
    for (const row of table(columns, rows)) line(row);
    line();
  }
  if (verification !== null) line(verifyHeadline(verification));
  if (result.engineVerification !== null) line(`The engine: ${verifyHeadline(result.engineVerification)}`);
  if (conversion !== null) line(conversionSentence(conversion));
  for (const origin of result.profileFrom) line(`Profile: ${originText(origin)}.`);
  if (build !== null) line(engineSentence(build));
  if (output.verbose) for (const miss of build?.why ?? []) for (const each of missLines(miss)) line(each);
  if (result.bench !== null) line(speedSentence(result.bench));
  line();
  if (result.engine !== null) line(`engine  ${result.engine}`);
  if (result.report !== null) line(`report  ${result.report}`);
  const warnings = [conversion?.warnings, build?.passport.warnings, build?.warnings];
  renderWarnings([...new Set(warnings.flatMap((each) => each ?? []))], output);
}
