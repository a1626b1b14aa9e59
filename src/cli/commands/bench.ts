import { type ExitCode, outcomeExitCodes, TrtforgeError } from '../../errors.js';
import { benchAgainst } from '../../quality/bench/against.js';
import type { BenchAgainst } from '../../quality/bench/against-result.js';
import { benchTools, benchWith } from '../../quality/bench/bench-with.js';
import type { BenchResult } from '../../quality/bench/result.js';
import { defineCommand } from '../command.js';
import { choice } from '../option.js';
import { againstRequest, type BenchOptionValues, benchOptions, benchRequest } from '../options/bench.js';
import { limited, timeoutOption } from '../options/timeout.js';
import { renderAgainst, renderBench } from './bench-text.js';

export const command = defineCommand({
  name: 'bench',
  summary: 'measure an engine on the GPU, alone or in turns with another; or an ONNX model on ONNX Runtime',
  arguments: [
    { name: 'ENGINE', describe: 'a TensorRT engine; or an ONNX model: host times of ONNX Runtime' },
  ],
  examples: [
    'trtforge bench resnet50.engine --batch 1,8,64 --no-data-transfers --graph --spin-wait',
    'trtforge bench new.engine --against old.engine --batch 64 --fail-above 1.02',
    'trtforge bench model.engine --against-mode graph',
    'trtforge bench model.engine --layers --samples times.npz --json',
    'trtforge bench model.engine --with trtexec',
    'trtforge bench model.onnx --batch 1,8',
    'trtforge bench model.onnx --provider cuda',
  ],
  options: {
    ...benchOptions,
    with: choice({
      flags: '--with <tool>',
      describe: 'what measures: trtforge itself, or the trtexec of the toolchain',
      choices: benchTools,
      default: 'trtforge',
    }),
    ...timeoutOption,
  },
  run: limited(async ([engine = ''], options, context): Promise<BenchResult | AgainstOutcome> => {
    if (isModel(engine)) {
      refuseComparison(engine, options);
      const { benchModel } = await import('../../quality/bench/bench-model.js');
      return benchModel(benchRequest(engine, options), context);
    }
    if (options.provider !== undefined) {
      throw new TrtforgeError('TF_USAGE', `--provider is for ONNX models; ${engine} is an engine.`, {
        remedy: 'Leave the option out.',
      });
    }
    if (isModel(options.against ?? '')) {
      throw new TrtforgeError('TF_USAGE', `${options.against} is an ONNX model; engines are compared.`, {
        remedy: `Build it first: trtforge build ${options.against} -o model.engine.`,
      });
    }
    const against = againstRequest(engine, options);
    if (against === undefined) return benchWith(options.with, benchRequest(engine, options), context);
    if (options.with !== 'trtforge') {
      throw new TrtforgeError('TF_USAGE', `${options.with} cannot measure two engines in turns.`, {
        remedy: 'Leave --with out of a comparison.',
      });
    }
    const result = await benchAgainst(against, context);
    return { ...result, exitCode: exitCodeOf(result) };
  }),
  render: (result: BenchResult | AgainstOutcome, output) =>
    result.schema === 'trtforge.bench/1' ? renderBench(result, output) : renderAgainst(result, output),
});

const isModel = (path: string): boolean => /\.onnx$/i.test(path);

/** An ONNX model is measured alone and by trtforge itself: a ratio of times on a processor and on a GPU is not for a gate. */
function refuseComparison(model: string, options: BenchOptionValues & { readonly with: string }): void {
  const { against, againstMode, rounds, failAbove } = options;
  const wishes = {
    '--against': against,
    '--against-mode': againstMode,
    '--rounds': rounds,
    '--fail-above': failAbove,
  };
  const wrong = Object.entries(wishes).find(([, wish]) => wish !== undefined)?.[0];
  if (wrong === undefined && options.with === 'trtforge') return;
  throw new TrtforgeError(
    'TF_USAGE',
    `${wrong ?? `--with ${options.with}`} is for engines; ${model} is an ONNX model, which is measured alone on ONNX Runtime.`,
    { remedy: `Leave it out, or build an engine first: trtforge build ${model} -o model.engine.` },
  );
}

type AgainstOutcome = BenchAgainst & { readonly exitCode: ExitCode };

/** A limit decides where one was given; without it only a comparison that shows nothing is no success. */
function exitCodeOf({ gate, verdict }: BenchAgainst): ExitCode {
  const outcome = gate?.outcome ?? (verdict === 'inconclusive' ? 'inconclusive' : 'pass');
  return outcomeExitCodes[outcome];
}
