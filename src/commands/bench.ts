import { benchAgainst } from '../bench/against.js';
import type { BenchAgainst } from '../bench/against-result.js';
import { benchTools, benchWith } from '../bench/bench-with.js';
import type { BenchResult } from '../bench/result.js';
import { defineCommand } from '../cli/command.js';
import { choice } from '../cli/option.js';
import { type ExitCode, outcomeExitCodes, TrtforgeError } from '../errors.js';
import { againstRequest, benchOptions, benchRequest } from './bench-options.js';
import { renderAgainst, renderBench } from './bench-text.js';

export const command = defineCommand({
  name: 'bench',
  summary: 'measure an engine on the GPU, alone or in turns with another',
  arguments: [{ name: 'ENGINE', describe: 'a TensorRT engine' }],
  examples: [
    'trtforge bench resnet50.engine --batch 1,8,64 --no-data-transfers --graph --spin-wait',
    'trtforge bench new.engine --against old.engine --batch 64 --fail-above 1.02',
    'trtforge bench model.engine --against-mode graph',
    'trtforge bench model.engine --layers --samples times.npz --json',
    'trtforge bench model.engine --with trtexec',
  ],
  options: {
    ...benchOptions,
    with: choice({
      flags: '--with <tool>',
      describe: 'what measures: trtforge itself, or the trtexec of the toolchain',
      choices: benchTools,
      default: 'trtforge',
    }),
  },
  run: async ([engine = ''], options, context): Promise<BenchResult | AgainstOutcome> => {
    refuseModel(engine);
    const against = againstRequest(engine, options);
    if (against === undefined) return benchWith(options.with, benchRequest(engine, options), context);
    if (options.with !== 'trtforge') {
      throw new TrtforgeError('TF_USAGE', `${options.with} cannot measure two engines in turns.`, {
        remedy: 'Leave --with out of a comparison.',
      });
    }
    const result = await benchAgainst(against, context);
    return { ...result, exitCode: exitCodeOf(result) };
  },
  render: (result, output) =>
    result.schema === 'trtforge.bench/1' ? renderBench(result, output) : renderAgainst(result, output),
});

/** ONNX Runtime's times would be those of a CPU. */
function refuseModel(engine: string): void {
  if (!/\.onnx$/i.test(engine)) return;
  throw new TrtforgeError('TF_USAGE', `${engine} is an ONNX model; bench measures engines.`, {
    remedy: `Build it first: trtforge build ${engine} -o model.engine.`,
  });
}

type AgainstOutcome = BenchAgainst & { readonly exitCode: ExitCode };

/** A limit decides where one was given; without it only a comparison that shows nothing is no success. */
function exitCodeOf({ gate, verdict }: BenchAgainst): ExitCode {
  const outcome = gate?.outcome ?? (verdict === 'inconclusive' ? 'inconclusive' : 'pass');
  return outcomeExitCodes[outcome];
}
