import { defineCommand } from '../../../cli/command.js';
import { text } from '../../../cli/option.js';
import { placeOptions } from '../../../cli/options/comparison.js';
import { loadOptions } from '../../../engines/runtime/tensorrt/options.js';
import { type ExitCode, outcomeExitCodes } from '../../../errors.js';
import { type ContractCheck, checkContract } from '../check/check.js';
import { renderContractCheck } from './verify-text.js';

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
