import { defineCommand } from '../../../cli/command.js';
import { flag, text } from '../../../cli/option.js';
import { convertReference } from '../record/record.js';
import type { ConvertedReference } from '../record/result.js';
import { renderWritten } from './record.js';

export const command = defineCommand({
  arguments: [{ name: 'REFERENCE', describe: 'a recorded stream: JSONL, or the folder of a compact one' }],
  examples: ['trtforge stream convert pytorch_reference_300.jsonl -o ref/'],
  options: {
    output: text({
      flags: '-o, --output <place>',
      describe: 'file.jsonl, or a folder: compact, state stored once',
      required: '-o ref/',
      writes: true,
    }),
    skipDamaged: flag({
      flags: '--skip-damaged',
      describe: 'leave damaged lines out and list them (default: the first one is an error)',
    }),
  },
  schema: async () => (await import('../record/result.js')).convertedReferenceSchema,
  run: async ([from = ''], { output, skipDamaged }, context): Promise<ConvertedReference> =>
    convertReference(from, output, { ...context, skipDamaged }),
  render: (result: ConvertedReference, output) => {
    const { red, yellow } = output.colors;
    renderWritten(result, output);
    for (const { line, why } of result.damaged) output.line(`${red('damaged')} line ${line}: ${why}`);
    for (const warning of result.warnings) output.line(`${yellow('warning')} ${warning}`);
  },
});
