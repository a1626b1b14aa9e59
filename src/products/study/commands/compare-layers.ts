import { publishFile } from '../../../base/files/publish.js';
import { plural } from '../../../base/text/quantity.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { text } from '../../../cli/option.js';
import { comparisonOptions, placeOptions, verifyRequestOf } from '../../../cli/options/comparison.js';
import { table } from '../../../cli/text.js';
import { guessLine } from '../../../engines/run/guessed-run.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import { inPhase } from '../../../events.js';
import { judgingOptions, verifyOptions } from '../../../quality/verify/options.js';
import { renderReport } from '../../../report/pages/report.js';
import { formatMeasure } from '../../../report/sentences.js';
import { compareLayers } from '../layers/compare-layers.js';
import { layersReport } from '../layers/page.js';
import { type LayerComparison, lossOf } from '../layers/result.js';

const commandOptions = {
  against: text({
    flags: '--against <model>',
    describe: 'the reference: an ONNX model, usually the FP32 original',
    required: '--against model.onnx',
  }),
  precision: {
    ...verifyOptions.precision,
    describe: 'whose tolerances to use (default: the lowest precision in MODEL)',
  },
  report: text({
    flags: '--report <file>',
    describe: 'also write an HTML page with the error by layer and where in a tensor it is',
    writes: ['an HTML page'],
  }),
  shapes: judgingOptions.shapes,
  ...comparisonOptions,
  ...placeOptions,
};

export const command = defineCommand({
  arguments: [
    {
      name: 'MODEL',
      describe:
        'what to judge: an ONNX model, or an engine with its passport, which is built again with more outputs',
    },
  ],
  examples: [
    'trtforge compare layers model.fp16.onnx --against model.onnx --report layers.html',
    'trtforge compare layers model.engine --against model.onnx --report layers.html',
    'trtforge compare layers yolo.int8.onnx --against yolo.onnx --inputs quant100.txt --preprocess yolo',
    'trtforge compare layers model.onnx --against model.onnx --provider tensorrt --provider-option trt_fp16_enable=1 --precision fp16',
  ],
  options: commandOptions,
  schema: async () => (await import('../layers/result.js')).layerComparisonSchema,
  run: async ([candidate = ''], options, context): Promise<LayerComparison & { exitCode: ExitCode }> => {
    const { against, report } = options;
    const found = await inPhase(
      'compare layers',
      context.emit,
      () => compareLayers(verifyRequestOf(candidate, options), context),
      `${candidate} against ${against}`,
    );
    const result: LayerComparison = { ...found, repeat: context.commandLine };
    if (report !== undefined)
      publishFile(report, renderReport({ kind: layersReport, result }, 'html').content);
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render,
});

const outputsText = ({ engine }: LayerComparison): string =>
  engine?.outputsFail === true
    ? 'with more outputs the engine fails too'
    : 'with more outputs the engine does not fail: `trtforge bisect` finds the fusion, if it fails without';

/** Number of tensors that the text lists; --json has all. */
const LISTED = 10;

function render(result: LayerComparison, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  output.line(`${bold(result.candidate)} against ${bold(result.reference)}`);
  output.line(dim(`${result.candidateBackend}, ${plural(result.samples, 'sample')}, seed ${result.seed}`));
  const guess = guessLine(result.inputs);
  if (guess !== null) output.line(dim(guess));
  output.line(
    `${plural(result.tensors.length, 'tensor')} compared ${dim(`(${result.onlyReference} of the reference and ${result.onlyCandidate} of the candidate have no counterpart)`)}`,
  );
  output.line();
  if (result.engine !== null)
    output.line(
      dim(`${plural(result.engine.inside, 'tensor')} inside of kernels not compared; ${outputsText(result)}`),
    );
  const worst = result.tensors.toSorted((a, b) => lossOf(b) - lossOf(a)).slice(0, LISTED);
  const rows = worst.map(({ outcome, name, op, error, nonFinite }) => [
    outcome,
    name,
    op,
    ...(error === null
      ? ['', '', '', '']
      : [error.maxAbs, error.maxRelative, error.sqnr, error.cosine].map(formatMeasure)),
    String(nonFinite.mismatching),
  ]);
  const head = ['', 'tensor', 'operator', 'max', 'max rel', 'SQNR', 'cosine', 'not finite'];
  const [titles = '', ...lines] = table(head, rows);
  output.line(dim(titles));
  const colors = { pass: green, fail: red, inconclusive: yellow };
  for (const [i, line] of lines.entries()) {
    const { outcome } = worst[i]!;
    output.line(colors[outcome](line.slice(0, outcome.length)) + line.slice(outcome.length));
  }
  output.line();
  output.line(colors[result.outcome](result.headline));
  for (const reason of result.reasons) output.line(`- ${reason}`);
  output.line(`${dim('To repeat:')} ${result.repeat}`);
}
