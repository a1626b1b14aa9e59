import { join } from 'node:path';
import { publishFile } from '../../../base/files/publish.js';
import { allBut, namesOf } from '../../../base/options/option.js';
import { formatBytes, formatMs, plural } from '../../../base/text/quantity.js';
import { broughtBy, type CommandContext, defineCommand, type TextOutput } from '../../../cli/command.js';
import { advanced, choice, flag, type OptionValues, option, text } from '../../../cli/option.js';
import { assertImages, placeOptions } from '../../../cli/options/comparison.js';
import { conversionFrom, typedConversionOptions } from '../../../cli/options/conversion.js';
import { storeOptions as stores } from '../../../engines/store/open-stores.js';
import { TrtforgeError } from '../../../errors.js';
import { inPhase } from '../../../events.js';
import { quantizedFormats } from '../../../formats/precision/formats/index.js';
import { int8 } from '../../../formats/precision/formats/int8.js';
import { type ScorerOf, scorerOptions, speechOptions } from '../../../quality/tasks/task.js';
import { judgingOptions } from '../../../quality/verify/request.js';
import { renderReport } from '../../../report/pages/read.js';
import { formatMeasure } from '../../../report/sentences.js';
import { advise } from '../advise/advise.js';
import { adviseReport, budgetText, samplesText } from '../advise/page.js';
import type { AdviseContext, AdviseRequest, Budget } from '../advise/request.js';
import type { Advice } from '../advise/result.js';
import { engineTimer } from '../advise/time-engine.js';

/** Ranges are the advisor's own, and every node that is not quantized becomes what is around it. */
const conversion = allBut(typedConversionOptions(), 'dataMax', 'calibrationCache');
const { calibration, calibrationMethod, preprocess, rest } = conversion;

/** Units listed in the text view; --json and the page have them all. */
const LISTED = 12;

const commandOptions = {
  output: text({
    flags: '-o, --output <folder>',
    describe: 'where the model, the report and what an interrupted run tried are',
    writes: true,
    required: '-o advice',
  }),
  precision: choice({
    flags: '--precision <type>',
    describe: 'what nodes are quantized to',
    choices: quantizedFormats.map(({ id }) => id),
    default: int8.id,
  }),
  budget: option({
    flags: '--budget <limit>',
    describe:
      "what must be kept: 30dB is the least signal to noise, 0.01 the most that the task's metric may lose (default: 30dB; with --data 0.01)",
    parse: parseBudget,
  }),
  calibration,
  heldOut: text({
    flags: '--held-out <file>',
    describe: 'samples to judge by, read as --calibration is (default: every fourth sample of --calibration)',
    repeat: true,
  }),
  preprocess,
  calibrationMethod,
  rest,
  ...allBut(scorerOptions, ...namesOf(speechOptions)),
  ...advanced(speechOptions),
  latency: flag({
    flags: '--latency',
    describe: 'also build and measure engines on the GPU, and undo what is not at least 1.02 times as fast',
  }),
  device: placeOptions.device,
  toolchain: text({
    flags: '--toolchain <name>',
    advanced: true,
    trust: true,
    describe: '--latency: which TensorRT builds, a name or a folder (default: the newest that can)',
  }),
  ...advanced({ store: stores.store }),
  threads: judgingOptions.threads,
  ...advanced(allBut(conversion, 'calibration', 'calibrationMethod', 'preprocess', 'rest')),
};

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model in FP32' }],
  examples: [
    'trtforge convert advise model.onnx --calibration samples.npz --budget 30dB -o advice',
    'trtforge convert advise yolo.onnx --calibration train/ --preprocess yolo --data instances.json --images val/ --max-images 500 --budget 0.01 -o advice',
    'trtforge convert advise model.onnx --precision fp8 --calibration samples.npz --latency -o advice',
  ],
  options: commandOptions,
  schema: async () => (await import('../advise/result.js')).adviceSchema,
  run: async ([model = ''], options, context): Promise<Advice> => {
    const { emit, commandLine } = context;
    const { output } = options;
    const advising = await contextOf(model, options, context);
    const found = await inPhase('advise', emit, () => advise(requestOf(model, options), advising));
    const result: Advice = { ...found, repeat: commandLine };
    for (const format of ['json', 'markdown', 'html'] as const) {
      const { name, content } = renderReport({ kind: adviseReport, result }, format);
      publishFile(join(output, name), content);
    }
    return result;
  },
  render,
});

function requestOf(model: string, options: OptionValues<typeof commandOptions>): AdviseRequest {
  const { precision, budget, output, threads } = options;
  assertImages(options.imgsz, options.calibration, options.heldOut);
  const { calibration: _calibration, ...converted } = conversionFrom({
    ...options,
    calibration: [],
    calibrationCache: undefined,
    dataMax: undefined,
  });
  return {
    model,
    precision,
    data: options.calibration,
    heldOut: options.heldOut,
    preparation: { preprocess: options.preprocess, imgsz: options.imgsz },
    method: options.calibrationMethod,
    conversion: converted,
    budget,
    output,
    threads,
  };
}

/** The context that scores and measures. Throws what `ScorerOf` and `engineTimer` throw. */
async function contextOf(
  model: string,
  options: OptionValues<typeof commandOptions>,
  context: CommandContext,
): Promise<AdviseContext> {
  const { data } = options;
  const { products } = context;
  const scored = data === undefined ? undefined : { ...options, data, model };
  const recognisers = await broughtBy(products, 'recognisers');
  const [scorerOf = noScorer] = await broughtBy(products, 'scorer');
  return {
    ...context,
    scorer: scored && scorerOf(scored, recognisers, context),
    timeEngine: options.latency ? engineTimer(options, context) : undefined,
  };
}

const noScorer: ScorerOf = ({ data }) => {
  throw new TrtforgeError('TF_USAGE', `No product of this trtforge scores a model on ${data}.`, {
    remedy: 'Remove --data: samples alone judge by signal to noise.',
  });
};

function parseBudget(value: string): Budget {
  const [, number = '', unit = ''] = /^([0-9.]+)\s*(db)?$/i.exec(value.trim()) ?? [];
  const amount = number === '' ? Number.NaN : Number(number);
  if (Number.isFinite(amount) && unit !== '') return { kind: 'sqnr', db: amount };
  if (Number.isFinite(amount) && amount < 1) return { kind: 'metric', drop: amount };
  throw new TrtforgeError('TF_USAGE', `"${value}" is not a budget.`, {
    remedy: 'Pass decibels, 30dB, or what the metric may lose, 0.01 for one point.',
  });
}

function render(result: Advice, output: TextOutput): void {
  const { bold, dim, green, yellow } = output.colors;
  output.line(`${bold(result.model)}  ${dim(`budget: ${budgetText(result)}`)}`);
  output.line(dim(samplesText(result)));
  const named = { [result.without]: 'not quantized', [result.all]: 'all units', [result.chosen]: 'advised' };
  for (const choice of result.choices) {
    const name = choice.role === 'fp32' ? 'FP32' : named[choice.id];
    if (name === undefined) continue;
    const metric = choice.metric === null ? '' : `  ${result.task?.metric.name} ${choice.metric.toFixed(4)}`;
    const share = dim(`${(100 * choice.macsShare).toFixed(0)} % of multiply-adds (estimated gain)`);
    output.line(
      `  ${name.padEnd(14)} ${`${formatMeasure(choice.sqnrDb)} dB`.padStart(12)}${metric}  ${formatBytes(choice.bytes)}  ${share}`,
    );
  }
  output.line();
  output.line(green(result.headline));
  for (const { unit, ms, layers } of result.latency?.isSlower === true ? result.latency.slower : [])
    output.line(
      `  ${yellow('slower')} ${bold(unit ?? 'conversions')}  ${formatMs(ms.before)} → ${formatMs(ms.after)}  ${dim(layers.join('; '))}`,
    );
  const left = result.units.filter(({ quantized }) => !quantized);
  for (const { name, op, why } of left.slice(0, LISTED))
    output.line(`  ${yellow(op)} ${bold(name)}${dim(`  ${why}`)}`);
  if (left.length > LISTED) output.line(dim(`  and ${left.length - LISTED} more (--json lists all)`));
  if (result.ruledOut.length > 0)
    output.line(
      dim(`  ${plural(result.ruledOut.length, 'node')} kept out by placement rules (--json lists them)`),
    );
  output.line(`model  ${result.output}`);
  output.line(`${dim('Next:')} ${result.convert}`);
  output.line(`${dim('To repeat:')} ${result.repeat}`);
}
