import { shellQuote } from '../../base/text/shell-line.js';
import { type ForeignFlag, rowsOf } from '../../cli/foreign-flag.js';
import type { SizeRange } from '../../engines/profiles/sizes.js';

const { valued } = rowsOf('bundle script');
const ends = ['min', 'opt', 'max'] as const;
/** The axes for which the script has ranges, named as in the models of its exporter. */
const axes = [
  { component: 'encoder', axis: 't', role: 'time', symbol: 'time' },
  { component: 'predictor', axis: 'u', role: 'tokens', symbol: 'token_len' },
  { component: 'joint', axis: 't', role: 'time', symbol: 'time' },
  { component: 'joint', axis: 'u', role: 'tokens', symbol: 'token_len' },
] as const;
const flagsOf = (component: string, end: string, axis: string) =>
  [axis, axis.toUpperCase()].map((name) => `--${component}-${end}-${name}`);
const sizes = axes.flatMap(({ component, axis }) => ends.flatMap((end) => flagsOf(component, end, axis)));

/** A range whose ends were passed in part: the others are the usual ones, as far as they fit. */
function completed({ min, opt, max }: Partial<SizeRange>, usual: SizeRange): string {
  const most = max ?? Math.max(usual.max, opt ?? 0, min ?? 0);
  const least = min ?? Math.min(usual.min, opt ?? most, most);
  return `${least}/${opt ?? Math.max(least, Math.min(usual.opt, most))}/${most}`;
}

function passedRange(passed: ReadonlyMap<string, string>, namesOf: (end: string) => readonly string[]) {
  const given = ends.flatMap((end) =>
    namesOf(end).flatMap((flag) => (passed.has(flag) ? [[end, Number(passed.get(flag))] as const] : [])),
  );
  return given.length === 0 ? undefined : (Object.fromEntries(given) as Partial<SizeRange>);
}

/** The file of --profiles that has the ranges, and the line that reads it. */
async function withProfilesFile(passed: ReadonlyMap<string, string>, line: string): Promise<string> {
  const { defaultRange } = await import('./component-profile.js');
  const { usualComponents } = await import('./component.js');
  const components = usualComponents.map((name) => {
    const symbols = axes.flatMap(({ component, axis, role, symbol }) => {
      const range = passedRange(passed, (end) => (component === name ? flagsOf(name, end, axis) : []));
      return range === undefined ? [] : [`${symbol}: ${completed(range, defaultRange(name, role)!)}`];
    });
    return `${name}: {${symbols.length === 0 ? '' : ` symbols: { ${symbols.join(', ')} } `}}`;
  });
  return `echo 'components: { ${components.join(', ')} }' > profiles.yaml && ${line} --profiles profiles.yaml`;
}

/** Flags of the script that speech exporters ship, `build_trt.py`. What it has in common with trtexec, Polygraphy or trtforge has no row here. */
export const scriptFlags: readonly ForeignFlag[] = [
  ...valued('--meta', '{value}', 'the meta file is an argument', {
    verbs: ['bundle build', 'bundle forge'],
  }),
  ...valued('--workspace-mb', '--workspace {value}M', 'sizes have units'),
  ...valued(
    '--trtexec',
    null,
    'the environment variable TRTEXEC names the program, and --builder trtexec builds with it',
    {
      instead: (passed, line) =>
        `TRTEXEC=${shellQuote(passed.get('--trtexec') ?? '')} ${line} --builder trtexec`,
    },
  ),
  ...valued(sizes.join(' '), null, 'ranges of components stand in a YAML file: --profiles FILE', {
    instead: withProfilesFile,
  }),
  ...valued(
    ends.map((end) => `--${end}-batch`).join(' '),
    null,
    'one option has all three: --batch MIN/OPT/MAX',
    {
      instead: (passed, line) =>
        `${line} --batch ${completed(passedRange(passed, (end) => [`--${end}-batch`]) ?? {}, { min: 1, opt: 1, max: 1 })}`,
    },
  ),
];
