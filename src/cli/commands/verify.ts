import { plural } from '../../base/text/quantity.js';
import { guessLine } from '../../engines/run/guessed-run.js';
import { type ExitCode, outcomeExitCodes, TrtforgeError } from '../../errors.js';
import { inPhase } from '../../events.js';
import type { ContractCheck } from '../../products/streaming/check-contract.js';
import { runContractOnly, runReference } from '../../products/streaming/commands/verify.js';
import { referenceOptions, streamWishes } from '../../products/streaming/commands/verify-options.js';
import { renderContractCheck, renderReference } from '../../products/streaming/commands/verify-text.js';
import type { ParityResult } from '../../products/streaming/compare/result-schema.js';
import { checkText } from '../../quality/verify/checks.js';
import type { VerifiedOutput, VerifyResult } from '../../quality/verify/result.js';
import { verifyModel } from '../../quality/verify/verify.js';
import { formatMeasure } from '../../report/sentences.js';
import { defineCommand, type TextOutput } from '../command.js';
import { choice, given, option, text } from '../option.js';
import { comparisonOptions, comparisonWishes } from '../options/comparison.js';
import { cudaGraphOption, engineOptions, engineWishes } from '../options/engine.js';
import { parseShapes } from '../values.js';

export const command = defineCommand({
  name: 'verify',
  summary: 'hold a model or engine against a model on the same inputs, or against a recorded stream',
  arguments: [
    {
      name: 'CANDIDATE',
      describe: 'what to judge: an ONNX model (a converted, quantized or simplified one) or an engine',
    },
  ],
  examples: [
    'trtforge verify model.fp16.onnx --against model.onnx',
    'trtforge verify model.fp16.onnx --against model.onnx --shapes input_ids:4x128 --samples 8 --seed 1',
    'trtforge verify model.engine --against model.onnx --plugin libplugins.so --device 1',
    'trtforge verify new.onnx --against old.onnx --atol 1e-3 --atol logits:1e-2 --inputs image=@cat.npy --json',
    'trtforge verify encoder.engine --reference reference.jsonl --contract encoder.contract.json --mode closed-loop --report parity.html',
    'trtforge verify encoder.fp16.onnx --reference reference.jsonl --decoder bundle/model_meta.json',
    'trtforge verify encoder.onnx --contract-only --contract encoder.contract.json --reference reference.jsonl',
  ],
  options: {
    against: text({
      flags: '--against <model>',
      describe: 'the reference: an ONNX model, usually the FP32 original',
    }),
    precision: choice({
      flags: '--precision <type>',
      describe: 'whose tolerances to use (default: the lowest precision in the candidate)',
      choices: ['fp32', 'fp16', 'bf16'],
    }),
    shapes: option({
      flags: '--shapes <shapes>',
      describe: 'shapes of inputs with open dimensions, as x:1x3x224x224',
      parse: parseShapes,
      repeat: true,
      aliases: ['--input-shapes'],
    }),
    ...comparisonOptions,
    ...referenceOptions,
    ...engineOptions,
    cudaGraph: cudaGraphOption,
  },
  run: async ([candidate = ''], options, context): Promise<VerifyAnswer> => {
    const { against, precision, reference } = options;
    const { emit, signal } = context;
    const ofModels = {
      '--against': against,
      '--precision': precision,
      '--shapes': options.shapes[0],
      '--seed': options.seed,
      '--samples': options.samples,
      '--val-range': options.valRange[0],
      '--inputs': options.inputs[0],
    };
    if (options.contractOnly) {
      const ofBoth = { '--atol': options.atol[0], '--rtol': options.rtol[0], '--threads': options.threads };
      const [wrong] = given({ ...ofModels, ...streamWishes(options), ...ofBoth });
      if (wrong !== undefined)
        throw new TrtforgeError('TF_USAGE', `--contract-only runs nothing, so ${wrong} decides nothing.`, {
          remedy: 'Leave one of them out.',
        });
      return runContractOnly(candidate, options, context);
    }
    if (reference !== undefined) {
      refuse('--against', ofModels);
      return runReference(candidate, reference, options, context);
    }
    refuse('--reference', streamWishes(options));
    if (against === undefined) {
      throw new TrtforgeError('TF_USAGE', 'There is no reference to hold the candidate against.', {
        remedy: `Give it: trtforge verify ${candidate} --against MODEL, --reference for a recorded stream, or --contract-only to hold it against its contract alone.`,
      });
    }
    const result = await inPhase(
      'verify',
      emit,
      () =>
        verifyModel(
          {
            candidate,
            reference: against,
            shapes: new Map(options.shapes.flat().map(({ name, dims }) => [name, dims])),
            ...comparisonWishes(options),
            ...(precision === undefined ? {} : { precision }),
            device: options.device,
            ...engineWishes(options),
          },
          { emit, signal },
        ),
      `${candidate} against ${against}`,
    );
    return { ...result, exitCode: outcomeExitCodes[result.outcome] };
  },
  render: (answer, output) => {
    if (answer.schema === 'trtforge.parity/1') renderReference(answer, output);
    else if (answer.schema === 'trtforge.contract-check/1') renderContractCheck(answer, output);
    else render(answer, output);
  },
});

type VerifyAnswer = (VerifyResult | ParityResult | ContractCheck) & { readonly exitCode: ExitCode };

/** Options of the other way to judge are refused, not dropped; `way` is the option they belong to. */
function refuse(way: '--against' | '--reference', wishes: Readonly<Record<string, unknown>>): void {
  const [wrong] = given(wishes);
  if (wrong === undefined) return;
  throw new TrtforgeError(
    'TF_USAGE',
    wrong === way
      ? '--against and --reference are two ways to judge a candidate.'
      : `${wrong} is for ${way}, which is another way to judge a candidate.`,
    { remedy: 'Leave one of them out.' },
  );
}

function render(result: VerifyResult, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  output.line(`${bold(result.candidate)} against ${bold(result.reference)}`);
  output.line(dim(`${result.candidateBackend}, ${plural(result.samples, 'sample')}, seed ${result.seed}`));
  if (result.roundedValues > 0) {
    const sixteen = result.precision === 'bf16' ? 'BF16' : 'FP16';
    output.line(
      dim(
        `${plural(result.roundedValues, 'value')} rounded to ${sixteen} after every step, as a GPU stores them`,
      ),
    );
  }
  output.line();
  for (const { name, dtype, shape, from } of result.inputs) {
    output.line(`  ${name}  ${dim(`${dtype} [${shape.join(', ')}]`)}  ${from}`);
  }
  const guess = guessLine(result.inputs);
  if (guess !== null) output.line(`  ${dim(guess)}`);
  const colored = { pass: green('pass'), fail: red('FAIL'), inconclusive: yellow('inconclusive') };
  for (const judged of result.outputs) {
    output.line();
    output.line(
      `${colored[judged.outcome]}  ${bold(judged.name)}  ${dim(`${judged.dtype} [${judged.shape.join(', ')}], ${plural(judged.elements, 'element')}`)}`,
    );
    for (const line of outputLines(judged)) output.line(`  ${line}`);
  }
  output.line();
  for (const reason of result.reasons) output.line(`- ${reason}`);
  output.line(`${colored[result.outcome]}  ${dim('again:')} ${result.repeat}`);
  if (result.next === undefined) return;
  output.line(result.next.message);
  if (result.next.command !== null) output.line(`${dim('Next:')} ${result.next.command}`);
}

/** Four statistics a line, then what decided. */
function outputLines({ statistics, checks, tolerance }: VerifiedOutput): readonly string[] {
  const cells = statistics.map(({ name, amount }) => `${name} ${formatMeasure(amount)}`.padEnd(28));
  const lines: string[] = [];
  for (let at = 0; at < cells.length; at += 4)
    lines.push(
      cells
        .slice(at, at + 4)
        .join('')
        .trimEnd(),
    );
  lines.push(...checks.map(checkText));
  if (tolerance !== null) {
    lines.push(
      `allowed: ${formatMeasure(tolerance.absolute)} + ${formatMeasure(tolerance.relative)} * |reference| (${tolerance.why})`,
    );
  }
  return lines;
}
