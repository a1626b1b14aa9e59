import type { FormerSpelling } from './command.js';

/** A command line as it was typed: the command, its options, and what is neither. */
export class TypedArgs {
  readonly #args: readonly string[];

  constructor(args: readonly string[]) {
    this.#args = args;
  }

  has = (flag: string): boolean => this.#args.some((arg) => arg === flag || arg.startsWith(`${flag}=`));

  /** The text behind a flag: `--against b` and `--against=b`. */
  value(flag: string): string | undefined {
    const at = this.#args.findIndex((arg) => arg === flag || arg.startsWith(`${flag}=`));
    const arg = this.#args[at];
    return arg === flag ? this.#args[at + 1] : arg?.slice(flag.length + 1);
  }

  /** Without a flag, and without its value where it has one. */
  without(flag: string, takesValue: boolean): TypedArgs {
    const at = this.#args.findIndex((arg) => arg === flag || arg.startsWith(`${flag}=`));
    if (at < 0) return this;
    return new TypedArgs(this.#args.toSpliced(at, this.#args[at] === flag && takesValue ? 2 : 1));
  }

  get list(): readonly string[] {
    return this.#args;
  }
}

/** Spellings of the core in the releases before the verbs were split. */
export const formerly: readonly FormerSpelling[] = [
  {
    was: 'inspect --against',
    now: when('inspect', '--against', (args) => {
      const other = args.value('--against') ?? 'B';
      const [first = 'A', ...rest] = args.without('--against', true).without('--layers', false).list;
      return ['engine', 'diff', first, other, ...renamed(rest, '--layers-from', '--from')];
    }),
  },
  {
    was: 'inspect --layers',
    now: when('inspect', '--layers', (args) => ['engine', 'layers', ...args.without('--layers', false).list]),
  },
  {
    was: 'inspect --layers-from',
    now: when('inspect', '--layers-from', (args) => [
      'engine',
      'layers',
      ...renamed(args.list, '--layers-from', '--from'),
    ]),
  },
  {
    was: 'inspect --strip-header',
    now: when('inspect', '--strip-header', (args) => [
      ...['engine', 'strip-header', ...args.without('--strip-header', true).list],
      ...['-o', args.value('--strip-header') ?? 'model.plan'],
    ]),
  },
  {
    was: 'bench --against',
    now: when('bench', '--against', (args) => {
      const other = args.value('--against') ?? 'OTHER';
      const [first = 'ENGINE', ...rest] = args.without('--against', true).list;
      return ['bench', 'compare', first, other, ...renamed(rest, '--against-mode', '--mode')];
    }),
  },
  {
    was: 'bench --against-mode',
    now: when('bench', '--against-mode', (args) => [
      'bench',
      'compare',
      ...renamed(args.list, '--against-mode', '--mode'),
    ]),
  },
];

/** A rewriting of the arguments behind a command, where they have a flag. */
export function when(
  command: string,
  flag: string,
  now: (args: TypedArgs) => readonly string[] | undefined,
): FormerSpelling['now'] {
  return ([first, ...rest]) => {
    const args = new TypedArgs(rest);
    return first === command && args.has(flag) ? now(args) : undefined;
  };
}

/** The arguments with one flag under its new name. */
export const renamed = (args: readonly string[], old: string, name: string): readonly string[] =>
  args.map((arg) => (arg === old || arg.startsWith(`${old}=`) ? name + arg.slice(old.length) : arg));
