import { defineCommand, type TextOutput } from '../cli/command.js';
import { choice, option, text } from '../cli/option.js';
import { integer, number, pattern, splitAtCommas } from '../cli/values.js';
import { TrtforgeError } from '../errors.js';
import { type EventListener, inPhase } from '../events.js';
import { observeRanges } from '../precision/calibration.js';
import type { ConversionResult } from '../precision/conversion.js';
import { convertModel } from '../precision/convert.js';
import type { ValueRange } from '../precision/options.js';
import { formatBytes, formatCount, formatMs, plural } from '../report/quantity.js';
import { readNpz } from '../tensor/npz.js';

/** Nodes listed per rule in the text view; --json has them all. */
const LISTED = 8;

export const command = defineCommand({
  name: 'convert',
  summary: 'FP32 ONNX to strongly typed FP16 or BF16',
  arguments: [{ name: 'MODEL', describe: 'an ONNX model of any size, with or without external data' }],
  examples: [
    'trtforge convert model.onnx -o model.fp16.onnx --precision fp16',
    "trtforge convert model.onnx -o model.bf16.onnx --precision bf16 --keep-nodes '^/decoder/' --keep-ops Softmax",
    'trtforge convert model.onnx -o model.fp16.onnx --precision fp16 --io-types convert --json',
  ],
  options: {
    output: text({ flags: '-o, --output <file>', describe: 'where the converted model goes' }),
    precision: choice({
      flags: '--precision <type>',
      describe: 'the 16-bit type',
      choices: ['fp16', 'bf16'],
      default: 'fp16',
    }),
    keepNodes: option({
      flags: '--keep-nodes <regex>',
      describe: 'nodes whose name matches stay FP32; may be repeated',
      parse: pattern,
      repeat: true,
      aliases: ['--nodes_to_exclude'],
    }),
    keepOps: text({
      flags: '--keep-ops <types>',
      describe: 'operators that stay FP32, separated by commas',
      repeat: true,
      aliases: ['--op_types_to_exclude'],
    }),
    convertOps: text({
      flags: '--convert-ops <types>',
      describe: 'operators converted although they stay FP32 by default',
      repeat: true,
      aliases: ['--op_types_to_include'],
    }),
    initMax: option({
      flags: '--init-max <number>',
      describe:
        'a weight with a larger magnitude keeps its nodes FP32 (default: the largest value of the type)',
      parse: number(0),
      aliases: ['--init_max'],
    }),
    calibration: text({
      flags: '--calibration <npz>',
      describe: 'one sample of inputs; the model runs on it and --data-max applies; may be repeated',
      repeat: true,
      aliases: ['--calibration_data'],
    }),
    dataMax: option({
      flags: '--data-max <number>',
      describe: 'an activation beyond this in calibration keeps its nodes FP32 (default: 1024 for fp16)',
      parse: number(0),
      aliases: ['--data_max'],
    }),
    maxReductionDepth: option({
      flags: '--max-reduction-depth <terms>',
      describe: 'products and sums over more terms stay FP32 (default: no limit)',
      parse: integer(1),
      aliases: ['--max_depth_of_reduction'],
    }),
    ioTypes: choice({
      flags: '--io-types <what>',
      describe: "the model's own inputs and outputs: keep FP32, or convert",
      choices: ['keep', 'convert'],
      default: 'keep',
    }),
    externalData: choice({
      flags: '--external-data <when>',
      describe: 'put the weights into a file beside the model',
      choices: ['auto', 'never', 'always'],
      default: 'auto',
    }),
  },
  run: async ([model = ''], options, { emit, signal }) => {
    if (options.output === undefined)
      throw new TrtforgeError('TF_USAGE', 'convert needs to know where the result goes.', {
        remedy: 'Say -o FILE.',
      });
    const { initMax, dataMax, maxReductionDepth } = options;
    if (dataMax !== undefined && options.calibration.length === 0)
      throw new TrtforgeError(
        'TF_USAGE',
        '--data-max judges what a calibration has seen, and there is none.',
        {
          remedy: 'Give a sample of inputs with --calibration sample.npz.',
        },
      );
    const ranges = await calibrate(model, options.calibration, { emit, signal });
    return convertModel(
      model,
      options.output,
      {
        precision: options.precision,
        ioTypes: options.ioTypes,
        externalData: options.externalData,
        keepNodes: options.keepNodes,
        keepOps: operators(options.keepOps),
        convertOps: operators(options.convertOps),
        ...(initMax === undefined ? {} : { initMax }),
        ...(dataMax === undefined ? {} : { dataMax }),
        ...(ranges === undefined ? {} : { ranges }),
        ...(maxReductionDepth === undefined ? {} : { maxReductionDepth }),
      },
      { emit, signal },
    );
  },
  render,
});

/** Ranges of the activations over all samples; ONNX Runtime is only loaded when there are any. */
async function calibrate(
  model: string,
  samples: readonly string[],
  context: { readonly emit: EventListener; readonly signal: AbortSignal },
): Promise<ReadonlyMap<string, ValueRange> | undefined> {
  if (samples.length === 0) return undefined;
  const { openOrtSession } = await import('../runtime/ort-session.js');
  return inPhase('calibrate', context.emit, () =>
    observeRanges(
      model,
      samples.map((path) => readNpz(path)),
      (path) => openOrtSession(path, context),
      context,
    ),
  );
}

const operators = (texts: readonly string[]): ReadonlySet<string> => new Set(texts.flatMap(splitAtCommas));

function render(result: ConversionResult, output: TextOutput): void {
  const { bold, dim, green, yellow, cyan } = output.colors;
  const { nodes, bytes, weights, casts } = result;
  const type = result.precision.toUpperCase();
  output.line(
    `${bold(result.output)}  ${green(type)}  ${formatBytes(bytes.before)} → ${formatBytes(bytes.after)}  ${dim(`in ${formatMs(result.ms)}`)}`,
  );
  output.line(
    `${formatCount(nodes.converted)} of ${plural(nodes.converted + nodes.kept, 'node')} with FP32 in them converted; ${plural(casts.added, 'cast')} added, ${formatCount(casts.removed)} removed`,
  );
  if (result.opset.reason !== null)
    output.line(`opset ${result.opset.before} → ${result.opset.after}: ${result.opset.reason}`);
  if (result.functionsInlined > 0)
    output.line(`${plural(result.functionsInlined, 'function call')} replaced by what the functions do`);
  if (weights.saturated + weights.toZero + weights.subnormal > 0) {
    output.line(
      `weights: ${formatCount(weights.saturated)} values clamped, ${formatCount(weights.toZero)} became zero, ${formatCount(weights.subnormal)} subnormal`,
    );
  }
  for (const rule of result.rules) {
    output.line();
    output.line(`${yellow('FP32')} ${bold(rule.title)}  ${dim(`${rule.id}, ${plural(rule.nodes, 'node')}`)}`);
    const kept = result.kept.filter((node) => node.rule === rule.id);
    for (const { node, op, reason } of kept.slice(0, LISTED))
      output.line(`  ${cyan(op)} ${node}${dim(`: ${reason}`)}`);
    if (kept.length > LISTED)
      output.line(dim(`  and ${formatCount(kept.length - LISTED)} more (--json lists all)`));
  }
  for (const warning of result.warnings) {
    output.line();
    output.line(`${yellow('warning')} ${warning}`);
  }
}
