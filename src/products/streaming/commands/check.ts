import { defineCommand, type TextOutput } from '../../../cli/command.js';
import { text } from '../../../cli/option.js';
import { placeOptions } from '../../../cli/options/comparison.js';
import { loadOptions } from '../../../engines/runtime/tensorrt/options.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import { uncheckedSentences } from '../../../formats/contract/contract.js';
import { type ContractCheck, checkContract } from '../check/check.js';

export const command = defineCommand({
  arguments: [{ name: 'FILE', describe: 'an ONNX model or a TensorRT engine; it is not run' }],
  examples: [
    'trtforge stream check encoder.onnx --contract encoder.contract.json',
    'trtforge stream check encoder.onnx --contract encoder.contract.json --reference reference.jsonl',
  ],
  options: {
    contract: text({
      flags: '--contract <file>',
      describe: 'contract of names, types, shapes, profiles, lengths and state',
      required: '--contract FILE',
    }),
    reference: text({
      flags: '--reference <place>',
      describe: 'recorded stream whose lengths and states are checked too',
    }),
    device: placeOptions.device,
    ...loadOptions,
  },
  schema: async () => (await import('../check/check.js')).contractCheckSchema,
  run: async ([file = ''], options, context): Promise<ContractCheck & { readonly exitCode: ExitCode }> => {
    const { contract, reference } = options;
    const check = await checkContract({ file, contract, reference }, { ...context, ...options });
    return { ...check, exitCode: outcomeExitCodes[check.outcome] };
  },
  render: renderContractCheck,
});

export function renderContractCheck(check: ContractCheck, output: TextOutput): void {
  const { bold, dim, green, red, yellow } = output.colors;
  output.line(`${bold(check.model.path)} against ${bold(check.contract.path ?? check.contract.name)}`);
  for (const { severity, wrong, message, why, remedy } of check.findings) {
    output.line();
    output.line(`${severity === 'error' ? red(severity) : yellow(severity)} ${message}`);
    output.line(`  ${wrong === 'undecided' ? '' : `The ${wrong} is wrong. `}${why}`);
    output.line(`  ${remedy}`);
  }
  if (check.predicted.length > 0) {
    output.line();
    output.line(
      dim(`state length after each chunk: ${check.predicted.map(({ stateOut }) => stateOut).join(', ')}`),
    );
  }
  for (const sentence of uncheckedSentences(check)) output.line(`${yellow('warning')} ${sentence}`);
  if (check.ignored.length > 0) {
    const named = check.ignored.slice(0, MOST_NAMED).join(', ');
    const more = check.ignored.length > MOST_NAMED ? `, … ${check.ignored.length} in all` : '';
    output.line(dim(`ignored: ${named}${more}`));
  }
  output.line();
  output.line(check.outcome === 'pass' ? green('pass') : red('FAIL'));
}

/** Number of entries named of long lists. */
const MOST_NAMED = 8;
