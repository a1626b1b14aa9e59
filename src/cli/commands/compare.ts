import { publishFile } from '../../base/files/publish.js';
import { plural } from '../../base/text/quantity.js';
import { outcomeExitCodes } from '../../errors.js';
import { inPhase } from '../../events.js';
import { checkText } from '../../quality/verify/checks.js';
import { compareOutputs } from '../../quality/verify/compare.js';
import { comparingOptions } from '../../quality/verify/options.js';
import type { CompareResult } from '../../quality/verify/result.js';
import { renderReport } from '../../report/pages/report.js';
import { compareReport } from '../../report/pages/verify.js';
import { formatMeasure } from '../../report/sentences.js';
import { defineCommand, type TextOutput } from '../command.js';
import { errorReportOption } from '../options/comparison.js';
import { table } from '../text.js';

const { precision, ...comparing } = comparingOptions;

export const command = defineCommand({
  arguments: [
    {
      name: 'A',
      describe:
        'the outputs to judge: npz, npy, safetensors, Polygraphy JSON, trtexec JSON, or a folder of them',
    },
    { name: 'B', describe: 'the reference, likewise' },
  ],
  examples: [
    'trtforge compare engine.npz onnxruntime.npz --precision fp16 --report compare.html',
    'trtforge compare out/ golden/ --atol 1e-3,logits:1e-2 --rtol 1e-3 --map logits_0=logits',
    'trtforge compare trt.json onnxrt.json --check elemwise,cosine=0.999,psnr=40 --json',
  ],
  options: {
    precision,
    report: errorReportOption,
    ...comparing,
  },
  schema: async () => (await import('../../quality/verify/result.js')).compareResultSchema,
  run: async ([candidate = '', reference = ''], options, context) => {
    const { report, ...asked } = options;
    const request = { candidate, reference, ...asked, errorMap: report !== undefined };
    const found = await inPhase(
      'compare',
      context.emit,
      () => compareOutputs(request, context),
      `${candidate} against ${reference}`,
    );
    const result: CompareResult = { ...found, repeat: context.commandLine };
    if (report !== undefined)
      publishFile(report, renderReport({ kind: compareReport, result }, 'html').content);
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render,
});

function render(result: CompareResult, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  const side = ({ path, format, runner }: CompareResult['candidate']) =>
    `${bold(path)} ${dim(`(${format}${runner === null ? '' : `, ${runner}`})`)}`;
  const colored = { pass: green('pass'), fail: red('FAIL'), inconclusive: yellow('inconclusive') };
  output.line(
    `${colored[result.outcome]}  ${side(result.candidate)} against ${side(result.reference)}, ${plural(result.runs, 'run')}`,
  );
  for (const reason of result.reasons) output.line(`- ${reason}`);
  output.line();
  const rows = result.outputs.map((judged) => {
    const amount = (name: string) => {
      const found = judged.statistics.find((statistic) => statistic.name === name);
      return found === undefined ? '' : formatMeasure(found.amount);
    };
    return [
      judged.outcome,
      judged.name,
      `${judged.dtype} [${judged.shape.join(', ')}]`,
      ...columns.map(([, statistic]) => amount(statistic)),
    ];
  });
  const head = ['', 'output', 'type', ...columns.map(([title]) => title)];
  const [titles = '', ...lines] = table(head, rows);
  output.line(dim(titles));
  for (const [i, text] of lines.entries()) {
    const outcome = result.outputs[i]?.outcome ?? 'inconclusive';
    output.line(text.replace(/^\S+/, colored[outcome]));
    for (const line of detailsOf(result.outputs[i])) output.line(`  ${line}`);
  }
  output.line();
  for (const [which, { unmatched }] of [['A', result.candidate] as const, ['B', result.reference] as const]) {
    if (unmatched.length > 0) output.line(dim(`only in ${which}: ${unmatched.join(', ')}`));
  }
  for (const warning of result.warnings) output.line(yellow(`! ${warning}`));
  output.line(`${dim('To repeat:')} ${result.repeat}`);
}

const columns = [
  ['max', 'max'],
  ['mean', 'mean'],
  ['p99', 'p99'],
  ['max rel', 'max relative'],
  ['cosine', 'cosine similarity'],
  ['PSNR', 'PSNR in dB'],
  ['outside', 'outside tolerance'],
] as const;

/** The checks that decided, and the worst places of a failed output. */
function detailsOf(judged: CompareResult['outputs'][number] | undefined): readonly string[] {
  if (judged === undefined) return [];
  const worst = judged.outcome === 'fail' ? (judged.worst ?? []) : [];
  const runs = worst.some(({ sample }) => sample > 0);
  return [
    ...judged.checks.map(checkText),
    ...worst.map(
      ({ sample, index, candidate, reference, error }) =>
        `[${index.join(', ')}]${runs ? ` of run ${sample}` : ''}: ${formatMeasure(candidate)} for ${formatMeasure(reference)}, off by ${formatMeasure(error)}`,
    ),
  ];
}
