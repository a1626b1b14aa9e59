import { publishFile } from '../../base/files/publish.js';
import { plural } from '../../base/text/quantity.js';
import { guessLine } from '../../engines/run/guessed-run.js';
import { engineOptions } from '../../engines/runtime/tensorrt/options.js';
import { type ExitCode, outcomeExitCodes } from '../../errors.js';
import { inPhase } from '../../events.js';
import { worstFirst } from '../../quality/verify/checks.js';
import { blindSpots, checkedLines, onSamples, verifyHeadline } from '../../quality/verify/headline.js';
import { judgingOptions, verifyOptions } from '../../quality/verify/options.js';
import type { VerifiedOutput, VerifyResult } from '../../quality/verify/result.js';
import { verifyModel } from '../../quality/verify/verify.js';
import { picturesOf, renderReport } from '../../report/pages/report.js';
import { verifyReport } from '../../report/pages/verify.js';
import { formatMeasure, shortStatistics } from '../../report/sentences.js';
import { defineCommand, searchesOf, type TextOutput } from '../command.js';
import { text } from '../option.js';
import {
  comparisonOptions,
  errorReportOption,
  placeOptions,
  verifyRequestOf,
} from '../options/comparison.js';

const commandOptions = {
  against: text({
    flags: '--against <model>',
    describe: 'the reference: an ONNX model, usually the FP32 original',
    required: '--against model.onnx',
  }),
  precision: verifyOptions.precision,
  report: {
    ...errorReportOption,
    describe: `${errorReportOption.describe}; with the worst pictures`,
  },
  shapes: judgingOptions.shapes,
  ...comparisonOptions,
  ...placeOptions,
  ...engineOptions,
};

export const command = defineCommand({
  arguments: [
    {
      name: 'CANDIDATE',
      describe: 'what to judge: an ONNX model (converted, quantized or simplified) or an engine',
    },
  ],
  examples: [
    'trtforge verify model.fp16.onnx --against model.onnx --report verify.html',
    'trtforge verify model.engine --against model.onnx --shapes x:4x3x224x224 --samples 8 --seed 1',
    'trtforge verify new.onnx --against old.onnx --atol 1e-3 --atol logits:1e-2 --inputs image=@cat.npy --json',
    'trtforge verify model.engine --against model.onnx --plugin libplugins.so --device 1',
  ],
  options: commandOptions,
  schema: async () => (await import('../../quality/verify/result.js')).verifyResultSchema,
  run: async ([candidate = ''], options, context): Promise<VerifyResult & { exitCode: ExitCode }> => {
    const result = await inPhase(
      'verify',
      context.emit,
      () =>
        verifyModel(
          { ...verifyRequestOf(candidate, options), errorMap: options.report !== undefined },
          { ...context, afterFailure: searchesOf(context.products).afterFailure },
        ),
      `${candidate} against ${options.against}`,
    );
    const repeatable = { ...result, repeat: context.commandLine };
    if (options.report !== undefined) {
      const report = { kind: verifyReport, result: repeatable };
      const pictures = await picturesOf(report, 'html');
      publishFile(options.report, renderReport(report, 'html', [], pictures).content);
    }
    return { ...repeatable, exitCode: outcomeExitCodes[result.outcome] };
  },
  render,
});

function render(result: VerifyResult, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  const colored = { pass: green('pass'), fail: red('FAIL'), inconclusive: yellow('inconclusive') };
  output.line(
    `${colored[result.outcome]}  ${bold(result.candidate)} against ${bold(result.reference)}, ${onSamples(result)}`,
  );
  for (const reason of result.reasons) output.line(`- ${reason}`);
  output.line();
  output.line(verifyHeadline(result));
  output.line(dim(`${result.candidateBackend}, ${plural(result.samples, 'sample')}, seed ${result.seed}`));
  if (result.roundedValues > 0)
    output.line(
      dim(
        `${plural(result.roundedValues, 'value')} rounded to 16 bits after every step, as a GPU stores them`,
      ),
    );
  output.line();
  for (const { name, dtype, shape, from } of result.inputs) {
    output.line(`  ${name}  ${dim(`${dtype} [${shape.join(', ')}]`)}  ${from}`);
  }
  const guess = guessLine(result.inputs);
  if (guess !== null) output.line(`  ${dim(guess)}`);
  for (const limit of blindSpots(result)) output.line(`  ${dim(limit)}`);
  for (const judged of worstFirst(result.outputs)) {
    output.line();
    output.line(
      `${colored[judged.outcome]}  ${bold(judged.name)}  ${dim(`${judged.dtype} [${judged.shape.join(', ')}], ${plural(judged.elements, 'element')}`)}`,
    );
    for (const line of outputLines(judged)) output.line(`  ${line}`);
  }
  output.line();
  output.line(`${dim('To repeat:')} ${result.repeat}`);
  if (result.next === undefined) return;
  output.line(result.next.message);
  for (const line of [result.next.command, result.next.bisect])
    if (line !== null) output.line(`${dim('Next:')} ${line}`);
}

/** The checks that decided, then the statistics. */
function outputLines(output: VerifiedOutput): readonly string[] {
  const { tolerance } = output;
  const lines = [...checkedLines(output), `error: ${shortStatistics(output)}`];
  if (tolerance === null) return lines;
  const [absolute, relative] = [tolerance.absolute, tolerance.relative].map(formatMeasure);
  return [...lines, `allowed: ${absolute} + ${relative} * |reference| (${tolerance.why})`];
}
