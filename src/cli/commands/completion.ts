import { z } from 'zod';
import { didYouMean } from '../../base/text/suggest-name.js';
import { TrtforgeError } from '../../errors.js';
import { defineCommand, type Product, type Verb } from '../command.js';
import { globalOptions } from '../option.js';

/** The parts of one verb that a shell completes. */
export interface CompletedVerb {
  /** As typed: `cache ls`. */
  readonly path: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
}

interface CompletedOption {
  /** `-q`, `--quiet`. */
  readonly names: readonly string[];
  readonly describe: string;
  readonly takesValue: boolean;
  /** The values it takes; empty where they are not a few words. */
  readonly choices: readonly string[];
}

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/** Every verb of the products with its options and those of every command. */
export async function completedVerbs(products: readonly Product[]): Promise<readonly CompletedVerb[]> {
  const verbs = products.flatMap((product) => product.verbs);
  return Promise.all(verbs.map(completedVerb));
}

async function completedVerb({ path, summary, load }: Verb): Promise<CompletedVerb> {
  const { options } = await load();
  const own = Object.values(options).filter(({ configOnly }) => !configOnly);
  const everywhere = globalOptions.map(([flags, describe]) => ({ flags, describe, choices: [] }));
  return {
    path,
    summary,
    options: [...own, ...everywhere].map(({ flags, describe, choices = [] }) => ({
      names: flags.split(/[ ,]+/).filter((word) => word.startsWith('-')),
      describe,
      takesValue: flags.includes('<'),
      choices,
    })),
  };
}

/** The script that a shell reads once: it completes verbs, options and values of few words, and file names elsewhere. It runs no program. */
export function completionScript(shell: Shell, verbs: readonly CompletedVerb[]): readonly string[] {
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](verbs);
}

const firstWords = (verbs: readonly CompletedVerb[]) => [
  ...new Set(verbs.map(({ path }) => path.split(' ')[0] ?? path)),
];
/** `cache` to `ls`, `why`, …; with summaries. */
const families = (verbs: readonly CompletedVerb[]) =>
  firstWords(verbs)
    .map((first) => ({
      first,
      members: verbs
        .filter(({ path }) => path.startsWith(`${first} `))
        .map(({ path, summary }) => ({ word: path.slice(first.length + 1), summary })),
    }))
    .filter(({ members }) => members.length > 0);
const pairs = (verbs: readonly CompletedVerb[]) =>
  verbs.map(({ path }) => path).filter((path) => path.includes(' '));
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** `'build --precision'` to its choices, for the options that have some. */
const valueCases = (verbs: readonly CompletedVerb[], command: (choices: string) => string) =>
  verbs.flatMap(({ path, options }) =>
    options
      .filter(({ choices }) => choices.length > 0)
      .map(({ names, choices }) => {
        const patterns = names.map((name) => quoted(`${path} ${name}`)).join('|');
        return `    ${patterns}) ${command(choices.join(' '))} ;;`;
      }),
  );

function bashScript(verbs: readonly CompletedVerb[]): readonly string[] {
  return [
    '# In ~/.bashrc: eval "$(trtforge completion bash)"',
    '_trtforge() {',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own.
    '  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} words=',
    // bash splits --option=value at the sign.
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own.
    '  [[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD-2]}',
    '  [[ $word == = ]] && word=',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own.
    '  (( COMP_CWORD > 2 )) && case "$verb ${COMP_WORDS[2]}" in',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own.
    `    ${pairs(verbs).map(quoted).join('|')}) verb="$verb ${'${COMP_WORDS[2]}'}" ;;`,
    '  esac',
    '  COMPREPLY=()',
    `  (( COMP_CWORD == 1 )) && words=${quoted(firstWords(verbs).join(' '))}`,
    '  (( COMP_CWORD == 2 )) && case "$verb" in',
    ...families(verbs).map(
      ({ first, members }) => `    ${first}) words=${quoted(members.map(({ word }) => word).join(' '))} ;;`,
    ),
    '  esac',
    '  [[ $word == -* ]] && case "$verb" in',
    ...verbs.map(
      ({ path, options }) =>
        `    ${quoted(path)}) words=${quoted(options.flatMap(({ names }) => names).join(' '))} ;;`,
    ),
    '  esac',
    '  case "$verb $previous" in',
    ...valueCases(verbs, (choices) => `words=${quoted(choices)}`),
    '  esac',
    '  [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '}',
    'complete -o default -F _trtforge trtforge',
  ];
}

function zshScript(verbs: readonly CompletedVerb[]): readonly string[] {
  const described = (list: readonly { readonly word: string; readonly summary: string }[]) =>
    list.map(({ word, summary }) => quoted(`${word}:${summary}`)).join(' ');
  const summaries = firstWords(verbs).map((first) => ({
    word: first,
    summary: verbs.find(({ path }) => path === first)?.summary ?? '',
  }));
  return [
    '#compdef trtforge',
    '# In ~/.zshrc, after compinit: eval "$(trtforge completion zsh)"',
    '_trtforge() {',
    '  local verb=$words[2] previous=$words[CURRENT-1] word=$words[CURRENT]',
    '  local -a list',
    '  if (( CURRENT > 3 )); then case "$verb $words[3]" in',
    `    ${pairs(verbs).map(quoted).join('|')}) verb="$verb $words[3]" ;;`,
    '  esac; fi',
    '  if (( CURRENT == 2 )); then',
    `    list=(${described(summaries)})`,
    '    _describe -t commands command list',
    '    return',
    '  fi',
    '  case "$verb $previous" in',
    ...valueCases(verbs, (choices) => `compadd -- ${choices}; return`),
    '  esac',
    '  if [[ $word == -* ]]; then case "$verb" in',
    ...verbs.map(({ path, options }) => {
      const list = options.flatMap(({ names, describe }) =>
        names.map((word) => ({ word, summary: describe })),
      );
      return `    ${quoted(path)}) list=(${described(list)}) ;;`;
    }),
    '    esac',
    '    _describe -o option list',
    '    return',
    '  fi',
    '  if (( CURRENT == 3 )); then case "$verb" in',
    ...families(verbs).map(({ first, members }) => `    ${first}) list=(${described(members)}) ;;`),
    '    esac',
    '    (( $#list )) && _describe -t commands command list',
    '  fi',
    '  _files',
    '}',
    'compdef _trtforge trtforge',
  ];
}

function fishScript(verbs: readonly CompletedVerb[]): readonly string[] {
  const at = (path: string) => `complete -c trtforge -n ${quoted(`__trtforge_is ${path}`)}`;
  const option = (path: string, { names, describe, takesValue, choices }: CompletedOption) => {
    const flags = names.map((name) =>
      name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
    );
    const value = choices.length > 0 ? `-x -a ${quoted(choices.join(' '))}` : takesValue ? '-r' : '';
    return [at(path), ...flags, value, `-d ${fishText(describe)}`].filter((part) => part !== '').join(' ');
  };
  return [
    '# In ~/.config/fish/config.fish: trtforge completion fish | source',
    'function __trtforge_is',
    '  set -l typed (commandline -opc)',
    '  set -l verb "$typed[2]"',
    `  contains -- "$typed[2] $typed[3]" ${pairs(verbs).map(quoted).join(' ')}; and set verb "$typed[2] $typed[3]"`,
    '  test "$verb" = "$argv"',
    'end',
    ...firstWords(verbs).map((first) => {
      const summary = verbs.find(({ path }) => path === first)?.summary ?? '';
      return `complete -c trtforge -n __fish_use_subcommand -f -a ${first} -d ${fishText(summary)}`;
    }),
    ...families(verbs).flatMap(({ first, members }) =>
      members.map(({ word, summary }) => `${at(first)} -a ${word} -d ${fishText(summary)}`),
    ),
    ...verbs.flatMap(({ path, options }) => options.map((each) => option(path, each))),
  ];
}

/** Between single quotes fish knows two escapes. */
const fishText = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

const schema = z.strictObject({
  schema: z.literal('trtforge.completion/1'),
  shell: z.enum(shells),
  script: z.array(z.string()).describe('lines of the script'),
});

export const command = defineCommand({
  arguments: [{ name: 'SHELL', describe: shells.join(', ') }],
  options: {},
  examples: ['eval "$(trtforge completion bash)"', 'trtforge completion fish | source'],
  schema: async () => schema,
  run: async ([shell = ''], _options, { products }): Promise<z.infer<typeof schema>> => {
    if (!isShell(shell))
      throw new TrtforgeError(
        'TF_USAGE',
        `There is no completion for "${shell}".${didYouMean(shell, shells)}`,
        { remedy: `Name one of ${shells.join(', ')}.` },
      );
    const script = completionScript(shell, await completedVerbs(products));
    return { schema: 'trtforge.completion/1', shell, script: [...script] };
  },
  render: ({ script }, { line }) => {
    for (const each of script) line(each);
  },
});

const isShell = (text: string): text is Shell => shells.some((shell) => shell === text);
