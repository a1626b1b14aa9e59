import { join } from 'node:path';
import { publishFile } from '../../../base/files/publish.js';
import { allBut, type OptionValues, valuesOf } from '../../../base/options/option.js';
import { formatMs, plural } from '../../../base/text/quantity.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { advanced, choice, inConfig, text } from '../../../cli/option.js';
import { buildOptions, configOnly, storeOptions, withStore } from '../../../cli/options/build.js';
import { assertImages, comparisonOptions, comparisonOptionsOf } from '../../../cli/options/comparison.js';
import { conversionFrom, typedConversionOptions } from '../../../cli/options/conversion.js';
import { step } from '../../../cli/plan.js';
import { messageLines } from '../../../cli/text.js';
import { parseBuilderConfig } from '../../../engines/identity/recipe.js';
import { isEngineFile } from '../../../engines/plan/header.js';
import { type ExitCode, outcomeExitCodes, TrtforgeError } from '../../../errors.js';
import { inPhase } from '../../../events.js';
import { defaultFormat, formatIds } from '../../../formats/precision/formats/index.js';
import type { CandidateBuild } from '../../../quality/known-answer/candidate-engines.js';
import { judgingOptions } from '../../../quality/verify/options.js';
import { renderReport } from '../../../report/pages/report.js';
import { bisectModel, decideBisect } from '../bisect/bisect.js';
import { type BisectRequest, searchOptions } from '../bisect/options.js';
import { bisectReport } from '../bisect/page.js';
import type { BisectResult } from '../bisect/result.js';

/** The options of the candidate's conversion; the types of its inputs and outputs are read from it. */
const conversion = typedConversionOptions('conversion: ');

const targets = 'tensorrt-rtx:sm_89,sm_120, tensorrt-rtx, tensorrt:sm_90 or tensorrt';

const { target, profiles, batch, dims, builderConfig, toolchain, device, plugins } = buildOptions;
const placed = { toolchain, device, plugins };

const commandOptions = {
  against: text({
    flags: '--against <model>',
    describe: 'the FP32 model that the candidate comes from',
    required: '--against model.onnx',
  }),
  ...searchOptions,
  precision: choice({
    flags: '--precision <type>',
    describe: 'what the candidate was converted to (default: the 16-bit type in it)',
    choices: formatIds,
  }),
  shapes: judgingOptions.shapes,
  ...comparisonOptions,
  threads: inConfig(comparisonOptions.threads),
  target: { ...target, describe: `build the candidate, a model, and search engines: ${targets}` },
  ...{ profiles, batch, dims, builderConfig },
  ...advanced(allBut(conversion, 'ioTypes', 'pluginTypes')),
  ...configOnly({ ...placed, pluginTypes: conversion.pluginTypes, ...storeOptions }),
};

export const command = defineCommand({
  arguments: [
    {
      name: 'CANDIDATE',
      describe: 'what fails: an ONNX model in FP16 or BF16, or an engine with its passport',
    },
  ],
  examples: [
    'trtforge bisect model.fp16.onnx --against model.onnx -o bisect',
    'trtforge bisect model.engine --against model.onnx -o bisect',
    "trtforge bisect model.onnx --against model.onnx --target tensorrt-rtx:sm_89 --batch 1/8/32 --check-command './check.sh {} {model}' -o bisect",
    "trtforge bisect encoder.fp16.onnx --against encoder.onnx --check-command 'trtforge stream verify {} --reference clip.jsonl' -o bisect",
  ],
  options: commandOptions,
  schema: async () => (await import('../bisect/result.js')).bisectResultSchema,
  run: async ([candidate = ''], options, context): Promise<BisectResult & { exitCode: ExitCode }> => {
    const { output } = options;
    const found = await inPhase('bisect', context.emit, () =>
      bisectModel(requestOf(candidate, options), context),
    );
    const result: BisectResult = { ...found, repeat: context.commandLine };
    for (const format of ['json', 'markdown', 'html'] as const) {
      const { name, content } = renderReport({ kind: bisectReport, result }, format);
      publishFile(join(output, name), content);
    }
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  plan: async ([candidate = ''], options, context) => {
    const request = requestOf(candidate, options);
    const { engines, precision, budget } = await decideBisect(request, context);
    const { reference, check, output } = request;
    return {
      steps: [
        ...(engines === null || isEngineFile(candidate) ? [] : [step('build', engines.engine)]),
        step('verify', candidate, { detail: `against ${check ?? reference}` }),
        ...(engines === null ? [] : [step('try', 'the engine built again')]),
        ...(engines?.hasTf32 ? [step('try', 'without TF32')] : []),
        ...(engines === null ? [] : [step('try', 'tensors inside of kernels as outputs')]),
        ...(precision === null ? [] : [step('try', `fewer nodes in ${precision}, halving what stays FP32`)]),
        ...['bisect.json', 'report.md', 'report.html'].map((name) => step('write', join(output, name))),
      ],
      resolved: { candidate, reference, precision: precision ?? 'fp32', 'trials at most': budget },
    };
  },
  render,
});

function requestOf(candidate: string, options: OptionValues<typeof commandOptions>): BisectRequest {
  const { against, precision } = options;
  assertImages(options.imgsz, options.inputs, options.calibration);
  const conversion = conversionFrom({
    ...options,
    precision: precision ?? defaultFormat.id,
    ioTypes: 'keep',
  });
  const compared = comparisonOptionsOf(options);
  return {
    candidate,
    reference: against,
    precision,
    ...valuesOf(searchOptions, options),
    build: buildOf(candidate, options),
    ...compared,
    data: compared.data ?? conversion.calibration?.judging,
    conversion,
  };
}

/** The build of candidates: for an engine, whose passport states what is built, and with --target. Throws TF_USAGE for options without effect. */
function buildOf(
  candidate: string,
  options: OptionValues<typeof commandOptions>,
): CandidateBuild | undefined {
  const { target, profiles, batch, dims, builderConfig } = options;
  const isEngine = isEngineFile(candidate);
  const passed = {
    '--target': isEngine ? target : undefined,
    '--profile': profiles[0],
    '--batch': batch,
    '--dim': Object.keys(dims)[0],
    '--builder-config': builderConfig[0],
  };
  const [useless] = Object.entries(passed).flatMap(([flag, value]) => (value === undefined ? [] : [flag]));
  if (useless !== undefined && (isEngine || target === undefined))
    throw new TrtforgeError(
      'TF_USAGE',
      isEngine
        ? `The passport of ${candidate} states how it is built, so ${useless} has no effect.`
        : `${useless} is for engines, and ${candidate} is searched as a model.`,
      {
        remedy: isEngine
          ? `Remove ${useless}.`
          : 'Pass the target of the engines: --target tensorrt-rtx:sm_89',
      },
    );
  if (!isEngine && target === undefined) return undefined;
  const build = valuesOf({ ...placed, ...allBut(storeOptions, 'noCache') }, withStore(options));
  return isEngine
    ? build
    : {
        ...build,
        ...{ target, profiles, batch, dims },
        settings: parseBuilderConfig(builderConfig),
      };
}

/** Most nodes and reasons that a terminal lists, and the longest line that people copy: a search that ended early keeps hundreds of nodes. */
const MOST_LISTED = 10;
const LONGEST_LINE = 2000;

function render(result: BisectResult, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  output.line(`${bold(result.candidate)} against ${bold(result.reference)}`);
  output.line(
    dim(`${plural(result.candidates.length, 'candidate')}, of which ${result.tried} tried in this run`),
  );
  if (result.build !== null) output.line(dim(`${plural(result.builds, 'engine')} built`));
  const colored = { pass: green('pass'), fail: red('FAIL'), unresolved: yellow('unresolved') };
  for (const { id, what, outcome, same, ms } of result.candidates) {
    const spent = (ms.convert ?? 0) + (ms.build ?? 0) + (ms.run ?? 0);
    const how = same === null ? formatMs(spent) : `the same as ${same === 0 ? 'the first' : same}`;
    output.line(`  ${String(id).padStart(3)}  ${colored[outcome]}  ${what}  ${dim(how)}`);
  }
  output.line();
  output.line(result.outcome === 'pass' ? green(result.headline) : yellow(result.headline));
  const listed = result.nodes.slice(0, MOST_LISTED);
  for (const { name, op, peak, overflows } of listed) {
    const reach = peak === null ? '' : dim(`  reaches ${peak}${overflows ? ', which overflows' : ''}`);
    output.line(`  ${op} ${bold(name)}${reach}`);
  }
  if (listed.length < result.nodes.length)
    output.line(
      `  and ${plural(result.nodes.length - listed.length, 'more node')}: bisect.json has their names`,
    );
  if (result.fusion !== null) {
    for (const name of result.fusion.nodes) output.line(`  fused   ${bold(name)}`);
    for (const name of result.fusion.outputs) output.line(`  output  ${bold(name)}`);
  }
  if (result.isConfirmed === true)
    output.line(dim('Confirmed: with every other node in FP32 it fails as well.'));
  for (const reason of result.reasons.slice(0, MOST_LISTED)) messageLines('-', reason, output);
  if (result.reduced !== null)
    output.line(
      `reduced      ${result.reduced.model}  ${dim(`fails by itself, ${plural(result.reduced.nodes, 'node')}`)}`,
    );
  if (result.workaround !== null) output.line(`work-around  ${result.workaround}`);
  for (const line of [result.convert, result.build])
    if (line !== null)
      output.line(`${dim('Next:')} ${line.length > LONGEST_LINE ? 'its line is in bisect.json' : line}`);
  output.line(`${dim('To repeat:')} ${result.repeat}`);
}
