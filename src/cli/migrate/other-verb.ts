import { shellQuote } from '../../base/text/shell-line.js';
import { TrtforgeError } from '../../errors.js';
import type { Product } from '../command.js';
import { readLine, toolOf } from './line.js';
import { migrate } from './migration.js';
import { withOwnFlags } from './own-flags.js';
import { foreignFlags } from './tables.js';

/** Verbs of other programs: what does their work here, and what follows the user's arguments. */
const theirs: Readonly<Record<string, readonly [verb: string, ...rest: readonly string[]]>> = {
  export: ['forge'],
  compile: ['build'],
  optimize: ['build'],
  predict: ['run', '--inputs', 'random'],
  infer: ['run', '--inputs', 'random'],
  profile: ['bench'],
  benchmark: ['bench'],
  quantize: ['convert', '--precision', 'int8', '--calibration', 'samples/'],
  check: ['inspect'],
  info: ['inspect'],
  simplify: ['edit', '--fold'],
  slim: ['edit', '--fold'],
};

/** Verbs that cannot work while a dimension is open. */
const sized = new Set(['build', 'forge']);

/**
 * Throws TF_USAGE, with the line to run, for arguments that begin with another program, with one of its verbs, or with flags of trtexec. Does nothing for
 * other arguments.
 */
export async function rejectOtherVerb(args: readonly string[], products: readonly Product[]): Promise<void> {
  const lines = await linesFor(args, products);
  if (lines.length === 0) return;
  const commands = await Promise.all(lines.map(async (line) => ['trtforge', ...(await withRanges(line))]));
  const typed = commands.map((words) => words.map(shellQuote).join(' '));
  throw new TrtforgeError('TF_USAGE', `\`${args[0]}\` is not a command of trtforge.`, {
    remedy: `Run: ${typed.join(' && ')}`,
    details: { lines: typed },
  });
}

async function linesFor(
  args: readonly string[],
  products: readonly Product[],
): Promise<readonly (readonly string[])[]> {
  const [first = '', ...rest] = args;
  const [verb, ...more] = (Object.hasOwn(theirs, first) ? theirs[first] : undefined) ?? [];
  const line = [
    ...(first === 'export' && rest.some((word) => word.startsWith('model=')) ? ['yolo'] : []),
    ...(/^--(?:onnx|loadEngine)\b/.test(first) ? ['trtexec'] : []),
    ...args,
  ];
  if (/^python[\d.]*$/.test(first) || toolOf(line[0] ?? '') !== undefined) {
    const rows = await foreignFlags(products);
    const { lines } = await migrate(readLine(line, rows), products, rows);
    return lines.map(({ words }) => words);
  }
  if (verb === undefined) return [];
  const path = verb === 'bench' && rest.some((word) => word.endsWith('.onnx')) ? 'bench model' : verb;
  // Of `predict model=m.onnx source=0` the model is what has a place here.
  const own = rest.flatMap(
    (word) => /^model=(.+)/.exec(word)?.slice(1) ?? (/^\w+=/.test(word) ? [] : [word]),
  );
  return [await withOwnFlags([...path.split(' '), ...own, ...more], path, products)];
}

/** The line with a profile where its model leaves dimensions open and nothing sets them. */
async function withRanges(line: readonly string[]): Promise<readonly string[]> {
  const model = line.find((word) => word.endsWith('.onnx'));
  if (
    !sized.has(line[0] ?? '') ||
    model === undefined ||
    line.some((word) => /^--(?:profile|batch|dim)/.test(word))
  )
    return line;
  const { suggestFor } = await import('../../engines/builder/resolve-build.js');
  try {
    const { profile } = suggestFor(model);
    return profile === null ? line : [...line, '--profile', profile];
  } catch (error) {
    // The line itself reports what is wrong with the model.
    if (error instanceof TrtforgeError) return line;
    throw error;
  }
}
