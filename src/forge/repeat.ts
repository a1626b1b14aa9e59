import { shellWord } from '../base/process/shell-word.js';
import { loadArgs } from '../engines/runtime/tensorrt/engine-options.js';
import { buildWords, conversionWords, quotedName, storeWords, word } from '../engines/store/build-args.js';
import { formatNamed } from '../formats/precision/formats/index.js';
import type { ForgeResult } from '../report/result.js';
import type { ForgeOptions } from './options.js';
import type { RunRoot } from './run-root.js';

type Repeat = ForgeResult['repeat'];

/** The comparisons' own command lines; null where there was none. */
interface Comparisons {
  readonly verify: string | null;
  readonly verifyEngine: string | null;
}

/** The command lines that repeat a run: as a whole, and each of its steps. */
export function repeatCommands(
  options: ForgeOptions,
  root: RunRoot,
  { verify, verifyEngine }: Comparisons,
): Repeat {
  const { model, precision } = options;
  const format = formatNamed(precision);
  const typed = format === undefined ? null : root.typedModel(model, format.id);
  const skip = options.skip ?? [];
  const line = (...words: readonly string[]) => ['trtforge', ...words].map(shellWord).join(' ');
  return [
    {
      step: 'The whole way',
      command: line(
        'forge',
        model,
        ...buildWords(options),
        ...storeWords(options),
        ...comparisonWords(options),
        ...loadArgs(options),
        ...skip.flatMap((phase) => ['--skip', phase]),
        '--run-root',
        root.path,
      ),
    },
    { step: 'Inspect', command: line('inspect', model) },
    ...(typed === null
      ? []
      : [
          {
            step: 'Convert',
            command: line(
              'convert',
              model,
              '--precision',
              String(precision),
              ...conversionWords(options),
              '-o',
              typed,
            ),
          },
        ]),
    ...(skip.includes('build')
      ? []
      : [
          {
            step: 'Build, or find in the store',
            command: line('build', model, ...buildWords(options), ...storeWords(options)),
          },
        ]),
    ...(verify === null ? [] : [{ step: 'Compare', command: verify }]),
    ...(verifyEngine === null ? [] : [{ step: 'Compare the engine', command: verifyEngine }]),
    { step: 'Render the report again', command: line('report', root.path) },
  ];
}

function comparisonWords({ verify = {} }: ForgeOptions): readonly string[] {
  const named = (name: string | null, said: string | number) =>
    name === null ? String(said) : `${quotedName(name)}:${said}`;
  return [
    ...word('--seed', verify.seed),
    ...word('--samples', verify.samples),
    ...(verify.ranges ?? []).flatMap(({ name, low, high }) => [
      '--val-range',
      named(name, `[${low},${high}]`),
    ]),
    ...(verify.files ?? []).flatMap(({ name, path }) => ['--inputs', `${quotedName(name)}=@${path}`]),
    ...(verify.atol ?? []).flatMap(({ name, value }) => ['--atol', named(name, value)]),
    ...(verify.rtol ?? []).flatMap(({ name, value }) => ['--rtol', named(name, value)]),
    ...word('--threads', verify.threads),
  ];
}
