import { basename } from 'node:path';
import { TrtforgeError } from '../../errors.js';
import type { ForeignFlag, Tool } from '../foreign-flag.js';

export interface ReadFlag {
  readonly flag: string;
  readonly row: ForeignFlag | undefined;
  readonly values: readonly string[];
}

/** A command line of another tool, read by that tool's rows. */
export interface ForeignLine {
  readonly tool: Tool;
  /** Polygraphy's: `run`, `inspect model`; ModelOpt's: `autocast`, `quantization`; of a script: trtforge's verb. */
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
  /^(run|convert|check lint|inspect (?:model|data|tactics|capability|diff-tactics|sparsity)|debug (?:build|precision|reduce|repeat)|surgeon(?: [a-z-]+)?|template|data|plugin)\b/;

/** Reads a line by the rows of its tool. Throws TF_USAGE for a line that calls none of them. */
export function readLine(words: readonly string[], rows: readonly ForeignFlag[]): ForeignLine {
  const at = words.findIndex((word) => toolOf(word) !== undefined);
  const called = toolOf(words[at] ?? '');
  if (called === undefined)
    throw new TrtforgeError(
      'TF_USAGE',
      'The line calls none of trtexec, polygraphy, onnxsim, onnxslim, modelopt.onnx, yolo export and the scripts of docs/migrating.md.',
      {
        remedy: "Pass the whole line: trtforge migrate 'trtexec --onnx=model.onnx --fp16'",
      },
    );
  const rest = words.slice(at + 1);
  if (called === 'yolo') return { tool: called, verb: rest[0] ?? '', inputs: rest.slice(1), flags: [] };
  const verb = called === 'polygraphy' ? (polygraphyVerbs.exec(rest.join(' '))?.[0] ?? '') : '';
  const tool = verb.startsWith('surgeon') ? 'polygraphy surgeon' : called;
  return {
    tool,
    verb: verb === '' ? verbOf(words[at] ?? '') : verb.replace(/^surgeon ?/, ''),
    ...readArguments(
      rest.slice(verb === '' ? 0 : verb.split(' ').length),
      rows.filter(({ of }) => of === tool),
      tool.endsWith(' script') ? rows : undefined,
    ),
  };
}

/** The tool that a word of a command line starts. */
export function toolOf(word: string): Tool | undefined {
  const name = basename(word);
  if (/^(trtexec(\.exe)?|\$\{?TRTEXEC\}?)$/i.test(name)) return 'trtexec';
  if (name === 'polygraphy') return 'polygraphy';
  if (/^modelopt\.onnx\.(?:autocast|quantization)/.test(name)) return 'modelopt';
  if (name === 'yolo' || name === 'onnxsim' || name === 'onnxslim') return name;
  return scripts.find(([script]) => script.test(name))?.[1];
}

/** Scripts that a product replaces, and the verb that does their work. */
const scripts: readonly (readonly [name: RegExp, tool: Tool, verb: string])[] = [
  [/^(?:build_trt\.py|build_all\.sh)$/, 'bundle script', 'bundle build'],
  [/^trt_streaming_parity\.py$/, 'streaming script', 'stream verify'],
  [/^streaming_encoder_reference\.py$/, 'streaming script', 'stream record'],
  [/^eval_\w+_coco\.py$/, 'detector script', 'eval detector'],
];

function verbOf(word: string): string {
  const name = basename(word);
  if (name.startsWith('modelopt.')) return name.includes('quantization') ? 'quantization' : 'autocast';
  return scripts.find(([script]) => script.test(name))?.[2] ?? '';
}

const short: Readonly<Record<string, string>> = { '-o': '--output', '-v': '--verbose' };

function readArguments(
  words: readonly string[],
  rows: readonly ForeignFlag[],
  /** Rows of every tool, for a script: its flags without a row of their own have the values of another tool's, or one. */
  others: readonly ForeignFlag[] | undefined,
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
    const next = equals < 0 ? words[i + 1] : word.slice(equals + 1);
    const row = rows.find((each) => each.flag === flag && (each.only === undefined || each.only === next));
    const values = equals < 0 ? [] : [word.slice(equals + 1)];
    const isValue = (next: string | undefined) => next !== undefined && !/^--?[a-z]/i.test(next);
    const ranked = others?.find((each) => each.flag === flag && each.takesValue === 'ranked');
    const takes = row === undefined ? others && (ranked?.takesValue ?? true) : row.takesValue;
    if (takes === 'rest') values.push(...words.slice(i + 1));
    if (takes === 'rest') i = words.length;
    else if (equals < 0 && takes !== undefined)
      while (isValue(words[i + 1]) && (values.length === 0 || takes === 'many' || takes === 'ranked'))
        values.push(words[++i]!);
    flags.push({ flag, row, values });
  }
  return { inputs, flags };
}
