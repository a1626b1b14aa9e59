import { quotedName, splitAtCommas } from '../../base/options/readers.js';
import type { ReadFlag } from './line.js';

/** Flags that describe optimization profiles, by the end of the range that they set. */
const ends: Readonly<Record<string, 'min' | 'opt' | 'max'>> = {
  '--minShapes': 'min',
  '--optShapes': 'opt',
  '--maxShapes': 'max',
  '--trt-min-shapes': 'min',
  '--trt-opt-shapes': 'opt',
  '--trt-max-shapes': 'max',
};

export const isProfileEnd = (flag: string): boolean => flag in ends;

export const isProfileFlag = (flag: string): boolean => isProfileEnd(flag) || flag === '--profile';

type Range = Partial<Record<'min' | 'opt' | 'max', string>>;

/**
 * The optimization profiles of a line, as `--profile` takes them: x:MIN/OPT/MAX. An end that is not there is the one beside it, as trtexec and Polygraphy
 * have it. Without any end, `shapes` are the profile.
 */
export function profilesOf(flags: readonly ReadFlag[], shapes: readonly string[]): readonly string[] {
  const profiles: Map<string, Range>[] = [];
  let open = new Set<string>();
  let current: Map<string, Range> | undefined;
  for (const { flag, values } of flags) {
    const end = ends[flag];
    if (flag === '--profile') current = undefined;
    // Polygraphy begins the next profile where an end comes a second time.
    if (end === undefined) continue;
    if (current === undefined || open.has(end)) {
      current = new Map();
      profiles.push(current);
      open = new Set();
    }
    open.add(end);
    for (const [name, dims] of values.flatMap(namedShapes))
      current.set(name, { ...current.get(name), [end]: dims });
  }
  if (profiles.length === 0 && shapes.length > 0)
    return [
      shapes
        .flatMap(namedShapes)
        .map(([name, dims]) => `${name}:${dims}`)
        .join(','),
    ];
  return profiles.map((profile) =>
    [...profile].map(([name, range]) => `${name}:${rangeText(range)}`).join(','),
  );
}

function rangeText({ min, opt, max }: Range): string {
  const middle = opt ?? max ?? min;
  const texts = [min ?? middle, middle, max ?? middle];
  return new Set(texts).size === 1 ? `${middle}` : texts.join('/');
}

/**
 * `x:1,3,224,224` and `x:[1,3,224,224]`, as editors of graphs write sizes, by axis as `--set-dim` takes them. What is negative or `auto` stays open; INPUT stands
 * for the input of a shape without a name.
 */
export const openAxes = (text: string): readonly string[] => {
  const { name, dims } = editedShape(text);
  return dims.flatMap((size, axis) =>
    /^(?:-\d+|0|auto|)$/.test(size) ? [] : [`${quotedName(`${name}:${axis}`)}=${size}`],
  );
};

/** The same as `--shapes` takes it; null for a file or an open size. */
export const runnableShape = (text: string): readonly string[] | null => {
  const { name, dims } = editedShape(text);
  return dims.every((size) => /^[1-9]\d*$/.test(size)) ? [`${name}:${dims.join('x')}`] : null;
};

function editedShape(text: string): { readonly name: string; readonly dims: readonly string[] } {
  const [, name = 'INPUT', dims = ''] = /^(?:(.+):)?\[?([^:\]]*)\]?$/.exec(text) ?? [];
  return { name, dims: dims.split(',').map((size) => size.trim().replace(/^(["'])(.*)\1$/, '$2')) };
}

/** `x:1x3x8` and `x:[1,3,8]`, as both tools write them. */
function namedShapes(text: string): readonly (readonly [string, string])[] {
  return splitAtCommas(text).map((part) => {
    const colon = part.lastIndexOf(':');
    const name = part.slice(0, colon);
    const dims = part
      .slice(colon + 1)
      .replace(/[[\]\s]/g, '')
      .replaceAll(',', 'x');
    return [name, dims === '' ? 'scalar' : dims];
  });
}
