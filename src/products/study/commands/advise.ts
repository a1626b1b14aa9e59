import { join } from 'node:path';
import { publishFile } from '../../../base/files/publish.js';
import { allBut, namesOf, type OptionValues, valuesOf } from '../../../base/options/option.js';
import { formatBytes, formatMs, plural } from '../../../base/text/quantity.js';
import { broughtBy, type CommandContext, defineCommand, type TextOutput } from '../../../cli/command.js';
import { advanced, flag, text } from '../../../cli/option.js';
import { assertImages, placeOptions } from '../../../cli/options/comparison.js';
import { typedConversionOptions } from '../../../cli/options/conversion.js';
import { storeOptions as stores } from '../../../engines/store/open-stores.js';
import { TrtforgeError } from '../../../errors.js';
import { inPhase } from '../../../events.js';
import { preparationOptions } from '../../../formats/images/preprocess.js';
import { conversionOptions } from '../../../formats/precision/options.js';
import { scorerOptions, speechOptions } from '../../../quality/tasks/options.js';
import type { ScorerOf } from '../../../quality/tasks/task.js';
import { frontSentence } from '../../../report/comparison/decision.js';
import { renderReport } from '../../../report/pages/report.js';
import { formatMeasure } from '../../../report/sentences.js';
import { advise } from '../advise/advise.js';
import { type AdviseContext, type AdviseRequest, adviseOptions } from '../advise/options.js';
import { adviseReport, budgetText, decisionOf, samplesText } from '../advise/page.js';
import type { Advice } from '../advise/result.js';
import { engineTimer } from '../advise/time-engine.js';

/** Ranges are the advisor's own, and every node that is not quantized becomes what is around it. */
const conversion = allBut(typedConversionOptions(), 'dataMax', 'calibrationCache');
const { calibration, calibrationMethod, preprocess, rest } = conversion;
const { output, precision, budget, heldOut, threads } = adviseOptions;

/** Units listed in the text view; --json and the page have them all. */
const LISTED = 12;

const commandOptions = {
  ...{ output, precision, budget },
  calibration,
  heldOut,
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
  threads,
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
  assertImages(options.imgsz, options.calibration, options.heldOut);
  return {
    model,
    ...valuesOf(adviseOptions, options),
    data: options.calibration,
    preparation: valuesOf(preparationOptions, options),
    method: options.calibrationMethod,
    conversion: valuesOf(allBut(conversionOptions, 'calibration'), options),
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
  const front = frontSentence(decisionOf(result));
  if (front !== null) output.line(dim(`front: ${front}`));
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
