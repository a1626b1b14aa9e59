import { plural } from '../../../base/text/quantity.js';
import { defineCommand } from '../../../cli/command.js';
import { text } from '../../../cli/option.js';
import { placeOptions } from '../../../cli/options/comparison.js';
import { loadOptions } from '../../../engines/runtime/tensorrt/options.js';
import { draftContract } from '../record/draft.js';
import { recordOptions } from '../record/options.js';
import type { DraftedContract } from '../record/result.js';

const WHY: Readonly<Record<DraftedContract['undecided'][number]['reason'], string>> = {
  'no-name': 'it reads like a state, and no output has its name',
  'reads-like-signal': 'an output has its name, but it reads like what is streamed',
  'shape-only': 'an output has its type and shape, but not its name',
};

export const command = defineCommand({
  arguments: [{ name: 'FILE', describe: 'an ONNX model or a TensorRT engine' }],
  examples: ['trtforge stream draft encoder.onnx --schedule 41,57 -o encoder.contract.json'],
  options: {
    output: text({
      flags: '-o, --output <file>',
      describe: 'file for the drafted contract',
      writes: ['JSON (trtforge.contract)'],
      required: '-o encoder.contract.json',
    }),
    schedule: {
      ...recordOptions.schedule,
      describe: 'frames of the first chunk and of the later ones: 41,57',
    },
    device: placeOptions.device,
    ...loadOptions,
  },
  schema: async () => (await import('../record/result.js')).draftedContractSchema,
  run: async ([file = ''], options, context): Promise<DraftedContract> => {
    const { output, schedule = [] } = options;
    return draftContract(file, output, schedule, { ...context, ...options });
  },
  render: ({ file, output: path, contract, undecided }: DraftedContract, { line, colors }) => {
    const { inputs, outputs, state, assertions } = contract;
    line(`${colors.bold(path)}  ${colors.dim(`drafted from ${file}`)}`);
    line(
      `${plural(inputs.length, 'input')}, ${plural(outputs.length, 'output')}, ${plural(assertions.length, 'assertion')}`,
    );
    for (const pair of state) line(`  ${pair.output} ${colors.dim('becomes the next')} ${pair.input}`);
    for (const { input, candidates, reason } of undecided)
      line(`  ${colors.yellow('undecided')} ${input}: ${WHY[reason]}. Candidates: ${candidates.join(', ')}`);
  },
});
