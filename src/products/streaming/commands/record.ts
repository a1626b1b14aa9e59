import { formatBytes, formatMs, plural } from '../../../base/text/quantity.js';
import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { advanced } from '../../../cli/option.js';
import { engineOptions } from '../../../engines/runtime/tensorrt/options.js';
import { ExitCode } from '../../../errors.js';
import { recordOptions } from '../record/options.js';
import { recordReference } from '../record/record.js';
import type { RecordResult } from '../record/result.js';

const { output, contract, schedule, chunks, seed, batch, threads, device } = recordOptions;

const commandOptions = {
  ...{ output, contract, schedule, chunks, seed, batch },
  ...advanced({ threads }),
  device,
  ...engineOptions,
};

export const command = defineCommand({
  arguments: [
    {
      name: 'FILE',
      describe: 'an ONNX model (run by ONNX Runtime on the CPU, in float32) or a TensorRT engine',
    },
  ],
  examples: [
    'trtforge stream record encoder.onnx --contract encoder.contract.json --chunks 50 --seed 42 -o ref.jsonl',
    'trtforge stream record encoder.onnx --schedule 41,57 --chunks 300 --seed 42 -o ref.jsonl',
  ],
  options: commandOptions,
  schema: async () => (await import('../record/result.js')).recordResultSchema,
  run: async ([file = ''], options, context): Promise<RecordResult & { exitCode: ExitCode }> => {
    const result = await recordReference({ ...options, file }, context);
    const isValid = result.violations.length === 0 && result.warnings.length === 0;
    return { ...result, repeat: context.commandLine, exitCode: isValid ? ExitCode.pass : ExitCode.failed };
  },
  render,
});

function render(result: RecordResult, output: TextOutput): void {
  const { dim, red, yellow } = output.colors;
  const { backend, bytes, chunks, output: path, provenance, stepMs, repeat } = result;
  output.line(`${output.colors.bold(path)}  ${dim(`${plural(chunks, 'chunk')}, ${formatBytes(bytes)}`)}`);
  output.line(
    dim(
      `${backend}, ${provenance.precision}, seed ${provenance.seed}, chunks of ${provenance.schedule.join(', then ')} frames`,
    ),
  );
  const rest = stepMs.median === null ? '' : `, then ${formatMs(stepMs.median)} (median)`;
  output.line(dim(`a step took ${formatMs(stepMs.first)}${rest}`));
  for (const { tensor, chunk, found, sentence } of result.violations)
    output.line(`${red('contract violation')} ${tensor}, chunk ${chunk}: ${found}  ${dim(sentence)}`);
  output.line(`${dim('To repeat:')} ${repeat}`);
  for (const warning of result.warnings) output.line(`${yellow('warning')} ${warning}`);
}
