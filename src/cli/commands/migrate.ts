import { z } from 'zod';
import { shellQuote } from '../../base/text/shell-line.js';
import { defineCommand, type TextOutput } from '../command.js';
import { tools } from '../foreign-flag.js';
import { readLine, shellWords } from '../migrate/line.js';
import { migrate } from '../migrate/migration.js';
import { foreignFlags } from '../migrate/tables.js';

const lineSchema = z.object({ command: z.string(), why: z.string() });

export const migrationSchema = z.object({
  schema: z.literal('trtforge.migrate/1'),
  tool: z.enum(tools),
  /** In the order in which they are run: together they do what the line does. */
  lines: z.array(lineSchema),
  /** Lines that may be used instead. */
  alternatives: z.array(lineSchema),
  /** Every flag of the line; `ours` is null without an equivalent, and empty where it is the default here. */
  flags: z.array(z.object({ flag: z.string(), ours: z.string().nullable(), why: z.string() })),
});

type MigrationResult = z.infer<typeof migrationSchema>;

export const command = defineCommand({
  arguments: [
    {
      name: 'LINE',
      describe: 'a line of trtexec, Polygraphy, onnxsim, ModelOpt or yolo export, quoted or behind --',
      many: true,
    },
  ],
  examples: [
    "trtforge migrate 'trtexec --onnx=model.onnx --fp16 --saveEngine=model.plan'",
    "trtforge migrate 'polygraphy run model.onnx --trt --onnxrt --fp16'",
    "trtforge migrate 'onnxsim model.onnx simple.onnx --overwrite-input-shape x:1,3,224,224'",
    'trtforge migrate -- python -m modelopt.onnx.autocast --onnx_path model.onnx --keep_io_types',
  ],
  options: {},
  schema: async () => migrationSchema,
  run: async (words, _options, { products }): Promise<MigrationResult> => {
    const rows = await foreignFlags(products);
    const line = readLine(words.length === 1 ? shellWords(words[0] ?? '') : words, rows);
    const { lines, alternatives, flags } = await migrate(line, products, rows);
    return {
      schema: 'trtforge.migrate/1',
      tool: line.tool,
      lines: lines.map(commandOf),
      alternatives: alternatives.map(commandOf),
      flags: [...flags],
    };
  },
  render,
});

const commandOf = ({ words, why }: { readonly words: readonly string[]; readonly why: string }) => ({
  command: ['trtforge', ...words].map(written).join(' '),
  why,
});

/** Quoted as a shell needs it; variables of the line stay variables, of the forms that run nothing. */
const written = (word: string): string => {
  const rest = word.replace(/\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})/g, '');
  return rest !== word && !/["$\\`]/.test(rest) ? `"${word}"` : shellQuote(word);
};

/** Only the lines that do the job are commands: the output may be pasted into a shell. */
function render({ lines, alternatives, flags }: MigrationResult, output: TextOutput): void {
  const { bold, dim, yellow } = output.colors;
  for (const { command, why } of lines) {
    output.line(bold(command));
    output.line(dim(`  # ${why}`));
  }
  for (const { command, why } of alternatives) output.line(dim(`# or: ${command}  # ${why}`));
  if (flags.length === 0) return;
  output.line();
  const width = Math.max(...flags.map(({ flag }) => Math.min(flag.length, 40)));
  for (const { flag, ours, why } of flags) {
    const became = ours === null ? yellow('no equivalent') : ours === '' ? 'default here' : `→ ${ours}`;
    output.line(`# ${flag.padEnd(width)}  ${became}  ${dim(why)}`);
  }
}
