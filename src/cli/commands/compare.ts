import { publishFile } from '../../base/files/publish.js';
import { splitAtCommas, splitNames } from '../../base/options/readers.js';
import { plural } from '../../base/text/quantity.js';
import { outcomeExitCodes, TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import { checkText, parseCheck } from '../../quality/verify/checks.js';
import { compareOutputs } from '../../quality/verify/compare.js';
import type { CompareResult } from '../../quality/verify/compare-result.js';
import { verifyPrecisions } from '../../quality/verify/result.js';
import { renderReport } from '../../report/read.js';
import { formatMeasure } from '../../report/sentences.js';
import { compareReport } from '../../report/verify-page.js';
import { defineCommand, type TextOutput } from '../command.js';
import { choice, flag, option, text } from '../option.js';
import { errorReportOption, toleranceOptions } from '../options/comparison.js';
import { table } from '../text.js';

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
    precision: choice({
      flags: '--precision <type>',
      describe: 'whose usual limits to use without tolerances and checks',
      choices: verifyPrecisions,
      default: 'fp32',
    }),
    report: errorReportOption,
    ...toleranceOptions,
    check: option({
      flags: '--check <checks>',
      describe:
        "Polygraphy's checks instead: elemwise, max, mean, median, quantile=0.99 (within --atol or within --rtol, 1e-5 each), l2=1e-5, cosine=0.997, psnr=30, snr=20; several by comma, logits:cosine=0.99 for one output",
      parse: (list) => splitAtCommas(list).map(parseCheck),
      repeat: true,
    }),
    map: option({
      flags: '--map <a=b>',
      describe: "what A calls a is B's output b",
      parse: parsePair,
      repeat: true,
    }),
    outputs: text({
      flags: '--outputs <names>',
      describe: "only these of B's outputs, separated by commas",
      repeat: true,
    }),
    runnerA: text({ flags: '--runner-a <name>', describe: "which runner of A's Polygraphy results" }),
    runnerB: text({ flags: '--runner-b <name>', describe: "which runner of B's Polygraphy results" }),
    voidType: choice({
      flags: '--void-type <type>',
      describe: 'what npy elements are whose type numpy has no name for',
      choices: ['bfloat16', 'float8_e4m3fn', 'float8_e5m2'],
    }),
    allowDtypeDifference: flag({
      flags: '--allow-dtype-difference',
      describe: 'compare the values of outputs whose types differ',
    }),
    strictNonFinite: flag({
      flags: '--strict-non-finite',
      describe: 'NaN and infinity fail even where both have the same, as in Polygraphy',
    }),
    allowLoose: flag({
      flags: '--allow-loose',
      describe: 'pass although zeros instead of A would pass as well, or B is one number everywhere',
    }),
  },
  schema: async () => (await import('../../quality/verify/compare-result.js')).compareResultSchema,
  run: async ([candidate = '', reference = ''], options, { emit, signal, commandLine }) => {
    const { precision, report, runnerA, runnerB, voidType } = options;
    const outputs = options.outputs.flatMap(splitNames);
    const found = await inPhase(
      'compare',
      emit,
      () =>
        compareOutputs(
          {
            candidate,
            reference,
            precision,
            atol: options.atol.flat(),
            rtol: options.rtol.flat(),
            checks: options.check.flat(),
            names: new Map(options.map),
            ...(outputs.length === 0 ? {} : { outputs }),
            candidateRunner: runnerA,
            referenceRunner: runnerB,
            voidDtype: voidType,
            allowDtypeDifference: options.allowDtypeDifference,
            strictNonFinite: options.strictNonFinite,
            allowLoose: options.allowLoose,
            errorMap: report !== undefined,
          },
          { emit, signal },
        ),
      `${candidate} against ${reference}`,
    );
    const result: CompareResult = { ...found, repeat: commandLine };
    if (report !== undefined)
      publishFile(report, renderReport({ kind: compareReport, result }, 'html').content);
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render,
});

/** Reads `a=b`; the first equals sign separates. */
function parsePair(pair: string): readonly [string, string] {
  const at = pair.indexOf('=');
  if (at <= 0 || at + 1 === pair.length) {
    throw new TrtforgeError('TF_USAGE', `"${pair}" is not a pair of outputs.`, {
      remedy: "Write A's name, an equals sign, B's name: --map y=logits.",
    });
  }
  return [pair.slice(0, at), pair.slice(at + 1)];
}

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

/** What decided, and for a failed output where it is worst. */
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
