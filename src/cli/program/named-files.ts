import { statIfThere } from '../../base/files/files.js';
import {
  assertNotInput,
  assertSameKind,
  type FileKind,
  protectingInputs,
} from '../../base/files/user-files.js';
import { longName } from '../../base/options/option.js';
import type { Command } from '../command.js';
import { writesTo } from '../option.js';
import { LOG_KINDS } from './log-file.js';

/** One text of the command line, or of what stands in for it, that may name a file. */
interface Named {
  readonly text: string;
  readonly writes: true | readonly FileKind[] | undefined;
}

/**
 * Does a command's work with every file protected that its arguments and resolved options name, and that no option of it writes. What would be
 * replaced by another kind of file, or is an input too, is rejected before the work. Errors: TF_OUTPUT_IS_INPUT, TF_OUTPUT_OF_OTHER_KIND.
 */
export function protectingNamedFiles<T>(
  command: Command,
  inputs: readonly string[],
  options: Readonly<Record<string, unknown>>,
  { force, work }: { readonly force: boolean; readonly work: () => T },
): T {
  const named = [...namedByArguments(command, inputs), ...namedByOptions(command, options)];
  const read = named.filter(({ writes }) => writes === undefined).flatMap(({ text }) => pathsIn(text));
  const written = named.filter(({ writes }) => writes !== undefined);
  const checked = () => {
    for (const { text, writes } of written) {
      if (statIfThere(text)?.isFile() !== true) continue;
      assertNotInput(text);
      if (writes !== undefined && writes !== true) assertSameKind(text, writes);
    }
    return work();
  };
  return protectingInputs(read, checked, { outputs: written.map(({ text }) => text), force });
}

const namedByArguments = ({ arguments: declared = [] }: Command, inputs: readonly string[]): Named[] =>
  inputs.map((text, at) => ({ text, writes: (declared[at] ?? declared.at(-1))?.writes }));

/** Options whose value is a name name no file, though one may be called so, and no more does a default. */
function namedByOptions({ options }: Command, passed: Readonly<Record<string, unknown>>): Named[] {
  const specs = new Map(Object.values(options).map((spec) => [longName(spec), spec]));
  return Object.entries(passed).flatMap(([option, value]) => {
    const spec = specs.get(option);
    const texts = [value].flat().filter((text) => typeof text === 'string');
    return /<names?>/.test(spec?.flags ?? '')
      ? []
      : texts
          .filter((text) => text !== spec?.default)
          .map((text) => ({ text, writes: option === 'log-file' ? LOG_KINDS : writesTo(spec, text) }));
  });
}

/** `FILE`, `name=@FILE`, `NAME=FILE`, and what stands between commas and colons; what is not a file is ignored. */
const pathsIn = (text: string): readonly string[] => [
  text,
  ...text.split(/[,:]|=@?/),
  ...Array.from(text.matchAll(/=@?/g), ({ index, 0: sign }) => text.slice(index + sign.length)),
];
