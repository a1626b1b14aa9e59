import { basename } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import type { ForeignFlag, Tool } from './flag.js';

export interface ReadFlag {
  readonly flag: string;
  readonly row: ForeignFlag | undefined;
  readonly values: readonly string[];
}

/** A command line of another tool, read by that tool's rows. */
export interface ForeignLine {
  readonly tool: Tool;
  /** Polygraphy's: `run`, `inspect model`. */
  readonly verb: string;
  readonly inputs: readonly string[];
  readonly flags: readonly ReadFlag[];
}

/**
 * The words of a line as a POSIX shell splits them, up to a comment, a pipe, a redirection or the next command. Variables stay as they are written.
 * Throws TF_USAGE for a quote that is not closed.
 */
export function shellWords(line: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  const text = line.replace(/\\\r?\n/g, ' ');
  for (let i = 0; i < text.length; i++) {
    const letter = text[i]!;
    if (/\s/.test(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      if (letter === '\n' && words.length > 0) return words;
    } else if (letter === '#' && word === undefined) {
      return words;
    } else if ('|;&<>'.includes(letter)) {
      // `2>&1`: the number belongs to the redirection.
      if (word !== undefined && !(letter === '>' && /^\d$/.test(word))) words.push(word);
      return words;
    } else if (letter === '\\') {
      word = (word ?? '') + (text[++i] ?? '');
    } else if (letter === "'" || letter === '"') {
      const end = closing(text, i);
      const quoted = text.slice(i + 1, end);
      word = (word ?? '') + (letter === '"' ? quoted.replace(/\\(["\\$`])/g, '$1') : quoted);
      i = end;
    } else word = (word ?? '') + letter;
  }
  return word === undefined ? words : [...words, word];
}

function closing(text: string, at: number): number {
  const quote = text[at];
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === '\\' && quote === '"') i++;
    else if (text[i] === quote) return i;
  }
  throw new TrtforgeError('TF_USAGE', 'A quote in the command line is not closed.');
}

const polygraphyVerbs =
  /^(run|convert|check lint|inspect (?:model|data|tactics|capability|diff-tactics|sparsity)|debug (?:build|precision|reduce|repeat)|surgeon|template|data|plugin)\b/;

/** Reads a line by the rows of its tool. Throws TF_USAGE for a line that calls none of them. */
export function readLine(words: readonly string[], rows: readonly ForeignFlag[]): ForeignLine {
  const at = words.findIndex((word) => toolOf(word) !== undefined);
  const tool = toolOf(words[at] ?? '');
  if (tool === undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      'The line calls none of trtexec, polygraphy and modelopt.onnx.autocast.',
      {
        remedy: "Pass the whole line: trtforge migrate 'trtexec --onnx=model.onnx --fp16'.",
      },
    );
  const rest = words.slice(at + 1);
  const verb = tool === 'polygraphy' ? (polygraphyVerbs.exec(rest.join(' '))?.[0] ?? '') : '';
  return {
    tool,
    verb,
    ...readArguments(
      rest.slice(verb === '' ? 0 : verb.split(' ').length),
      rows.filter(({ of }) => of === tool),
    ),
  };
}

/** The tool that a word of a command line starts. */
export function toolOf(word: string): Tool | undefined {
  const name = basename(word);
  if (/^(trtexec(\.exe)?|\$\{?TRTEXEC\}?)$/i.test(name)) return 'trtexec';
  if (name === 'polygraphy') return 'polygraphy';
  return name.startsWith('modelopt.onnx.autocast') ? 'modelopt' : undefined;
}

const short: Readonly<Record<string, string>> = { '-o': '--output', '-v': '--verbose' };

function readArguments(
  words: readonly string[],
  rows: readonly ForeignFlag[],
): Pick<ForeignLine, 'inputs' | 'flags'> {
  const inputs: string[] = [];
  const flags: ReadFlag[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (!word.startsWith('-')) {
      inputs.push(word);
      continue;
    }
    const equals = word.indexOf('=');
    const written = equals < 0 ? word : word.slice(0, equals);
    const flag = short[written] ?? written;
    const row = rows.find((each) => each.flag === flag);
    const values = equals < 0 ? [] : [word.slice(equals + 1)];
    const isValue = (next: string | undefined) => next !== undefined && !/^--?[a-z]/i.test(next);
    if (equals < 0 && row?.takesValue !== undefined)
      while (isValue(words[i + 1]) && (values.length === 0 || row.takesValue !== true))
        values.push(words[++i]!);
    flags.push({ flag, row, values });
  }
  return { inputs, flags };
}
