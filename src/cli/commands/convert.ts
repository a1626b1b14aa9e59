import { type OptionValues, valuesOf } from '../../base/options/option.js';
import { formatBytes, formatCount, formatMs, plural } from '../../base/text/quantity.js';
import { TrtforgeError } from '../../errors.js';
import { type ConvertOptions, convertModel, convertOptions } from '../../formats/precision/convert.js';
import { quantizedFormatNamed } from '../../formats/precision/formats/index.js';
import { type ConversionResult, floatPrecision } from '../../formats/precision/result.js';
import { defineCommand, type TextOutput } from '../command.js';
import { advanced, text } from '../option.js';
import { assertImages, placeOptions } from '../options/comparison.js';
import { conversionFrom, typedConversionOptions } from '../options/conversion.js';

const { initMax, maxReductionDepth, ...conversion } = typedConversionOptions();

/** Nodes listed per rule in the text view; --json has them all. */
const LISTED = 8;

const commandOptions = {
  output: text({
    flags: '-o, --output <file>',
    describe: 'where the converted model goes',
    writes: ['an ONNX model'],
    required: '-o model.fp16.onnx',
  }),
  precision: convertOptions.precision,
  ...conversion,
  ...advanced({ initMax, maxReductionDepth }),
  ...advanced(placeOptions),
  unquantizedNodes: convertOptions.unquantizedNodes,
  externalData: convertOptions.externalData,
};

export const command = defineCommand({
  arguments: [{ name: 'MODEL', describe: 'an ONNX model of any size, with or without external data' }],
  examples: [
    'trtforge convert model.onnx -o model.fp16.onnx --precision fp16',
    "trtforge convert model.onnx -o model.bf16.onnx --precision bf16 --keep-nodes '^/decoder/' --keep-ops Softmax",
    'trtforge convert model.onnx -o model.fp16.onnx --precision fp16 --io-types convert --json',
    'trtforge convert model.onnx -o model.int8.onnx --precision int8 --calibration samples.npz',
  ],
  options: commandOptions,
  schema: async () => (await import('../../formats/precision/result.js')).conversionSchema,
  run: async ([model = ''], options, context) => {
    return convertModel(model, options.output, requestOf(options), context);
  },
  render,
});

/** Throws TF_USAGE for options that contradict each other. */
function requestOf(options: OptionValues<typeof commandOptions>): ConvertOptions {
  const { precision, externalData } = options;
  if (options.unquantizedNodes.length > 0 && quantizedFormatNamed(precision) === undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      '--high-precision-nodes is about a quantization, and there is none.',
      {
        remedy: 'Pass --precision int8, fp8, int4 or nvfp4, or keep the nodes FP32: --keep-nodes.',
      },
    );
  assertImages(options.imgsz, options.calibration);
  return {
    ...conversionFrom(options, valuesOf(placeOptions, options)),
    precision,
    externalData,
  };
}

function render(result: ConversionResult, output: TextOutput): void {
  const { bold, dim, green, yellow, cyan } = output.colors;
  const { nodes, bytes, weights, casts } = result;
  const type = result.precision.toUpperCase();
  output.line(
    `${bold(result.output)}  ${green(type)}  ${formatBytes(bytes.before)} → ${formatBytes(bytes.after)}  ${dim(`in ${formatMs(result.ms)}`)}`,
  );
  renderQuantization(result, output);
  if (floatPrecision(result) !== 'fp32')
    output.line(
      `${formatCount(nodes.converted)} of ${plural(nodes.converted + nodes.kept, 'node')} with FP32 in them converted to ${floatPrecision(result).toUpperCase()}; ${plural(casts.added, 'cast')} added, ${formatCount(casts.removed)} removed`,
    );
  if (result.opset.reason !== null)
    output.line(`opset ${result.opset.before} → ${result.opset.after}: ${result.opset.reason}`);
  if (result.functionsInlined > 0)
    output.line(`${plural(result.functionsInlined, 'function call')} replaced by what the functions do`);
  if (result.codesDequantized)
    output.line(
      `${plural(result.codesDequantized, 'weight')} of integers behind a Cast: a DequantizeLinear reads them now`,
    );
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

/** Prints nodes with pairs, and the rules that exclude others. */
function renderQuantization({ precision, quantization }: ConversionResult, output: TextOutput): void {
  if (quantization === null) return;
  const { bold, dim, green, yellow, cyan } = output.colors;
  const { nodes, rules, weights, activations, method } = quantization;
  const type = precision.toUpperCase();
  const quantized = nodes.filter((node) => node.quantized).length;
  output.line(
    `${formatCount(quantized)} of ${plural(nodes.length, 'node')} considered quantized to ${type}: ${plural(weights, 'weight')}, ${plural(activations.length, 'activation')}${method === null ? '' : ` (ranges: ${method})`}`,
  );
  for (const rule of rules) {
    const count = dim(`${rule.id}, ${plural(rule.nodes, 'node')}`);
    if (rule.quantized) {
      output.line(`  ${green(type)} ${rule.title}  ${count}`);
      continue;
    }
    output.line(`  ${yellow('not quantized')} ${bold(rule.title)}  ${count}`);
    const kept = nodes.filter((node) => !node.quantized && node.rule === rule.id);
    for (const { node, op, reason } of kept.slice(0, LISTED))
      output.line(`    ${cyan(op)} ${node}${dim(`: ${reason}`)}`);
    if (kept.length > LISTED)
      output.line(dim(`    and ${formatCount(kept.length - LISTED)} more (--json lists all)`));
  }
}
