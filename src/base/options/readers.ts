import { TrtforgeError } from '../../errors.js';
import { decimalOf } from '../text/quantity.js';
import { shellQuote } from '../text/shell-line.js';

/** Reads `1x3x224x224`, `[1,3,224,224]`, `scalar`; undefined when it is none of them. */
export function parseDims(text: string): number[] | undefined {
  const trimmed = text.trim();
  if (trimmed === 'scalar' || trimmed === '[]') return [];
  const parts = /^\[(.*)\]$/.exec(trimmed)?.[1]?.split(',') ?? trimmed.split(/x/i);
  const dims = parts.map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  return dims.every(Number.isSafeInteger) ? dims : undefined;
}

interface NamedShape {
  readonly name: string;
  /** Empty for a scalar. */
  readonly dims: readonly number[];
}

/**
 * Reads `x:1x3x224x224`, `x:[1,3,224,224]` and `x:scalar`, several separated by commas.
 * The last `:` separates name and dimensions, so names may have colons; names with commas stand in single quotes.
 */
export function parseShapes(text: string): readonly NamedShape[] {
  return splitAtCommas(text).map((part) => {
    const colon = part.lastIndexOf(':');
    const name = unquote(part.slice(0, colon).trim());
    const dims = colon > 0 ? parseDims(part.slice(colon + 1).trim()) : undefined;
    if (dims === undefined || name === '') {
      throw new TrtforgeError('TF_SHAPE_INVALID', `"${part}" is not a shape.`);
    }
    return { name, dims };
  });
}

/** The shapes of all lists, by name. */
export const shapesByName = (
  read: readonly (readonly NamedShape[])[],
): ReadonlyMap<string, readonly number[]> => new Map(read.flat().map(({ name, dims }) => [name, dims]));

/** Reads a tolerance for all outputs (`1e-3`) or for one (`out:1e-3`, the last colon separates). `name` is null for all. */
export function parseTolerance(text: string): { readonly name: string | null; readonly value: number } {
  const colon = text.lastIndexOf(':');
  const value = decimalOf(text.slice(colon + 1));
  if (value === undefined || value < 0 || colon === 0) {
    throw new TrtforgeError('TF_USAGE', `"${text}" is not a tolerance.`, {
      remedy: 'Write 1e-3 for all outputs or out:1e-3 for one.',
    });
  }
  return { name: colon < 0 ? null : unquote(text.slice(0, colon)), value };
}

/** Reads `x=@file.npy`. */
export function parseNamedFile(text: string): { readonly name: string; readonly path: string } {
  const at = text.lastIndexOf('=@');
  if (at <= 0 || at + 2 === text.length) {
    throw new TrtforgeError('TF_USAGE', `"${text}" is not written as name=@file.npy.`, {
      remedy: 'Write name=@file.npy.',
    });
  }
  return { name: unquote(text.slice(0, at)), path: text.slice(at + 2) };
}

/** Reads `key=value`. */
export function parseSetting(text: string): readonly [key: string, value: string] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  throw new TrtforgeError('TF_USAGE', `"${text}" is not written as key=value.`, {
    remedy: 'Write key=value.',
  });
}

/** Reads a range of values for all inputs (`[0,1]`) or for one (`x:[0,1]`). `name` is null for all. */
export function parseValueRange(text: string): {
  readonly name: string | null;
  readonly low: number;
  readonly high: number;
} {
  const match = /^(?:(.+):)?\[([^,\]]+),([^,\]]+)\]$/.exec(text.trim());
  const low = decimalOf(match?.[2] ?? '');
  const high = decimalOf(match?.[3] ?? '');
  if (low === undefined || high === undefined || low > high) {
    throw new TrtforgeError('TF_USAGE', `"${text}" is not a range of values.`, {
      remedy: 'Write [0,1] for all inputs or x:[0,1] for one.',
    });
  }
  return { name: match?.[1] === undefined ? null : unquote(match[1]), low, high };
}

function unquote(text: string): string {
  return /^'.*'$/.test(text) || /^".*"$/.test(text) ? text.slice(1, -1) : text;
}

/** Splits at commas that stand outside brackets and quotes. */
export function splitAtCommas(text: string): readonly string[] {
  return (text.match(/(?:'[^']*'|"[^"]*"|\[[^\]]*\]|[^,])+/g) ?? [])
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Names separated by commas; a name with one stands in quotes. */
export const splitNames = (text: string): readonly string[] => splitAtCommas(text).map(unquote);

/** A name as `splitNames` and its like read it: in quotes where it has a letter that separates. */
export const quotedName = (name: string, separators = /[,'"]/): string =>
  separators.test(name) ? `'${name}'` : name;

/** A reader of regular expressions. */
export function pattern(text: string): RegExp {
  try {
    return new RegExp(text, 'u');
  } catch (cause) {
    throw new TrtforgeError('TF_USAGE', `"${text}" is not a regular expression.`, { cause });
  }
}

/** Names with characters that mean something in a range or a shape stand in quotes. */
export const quotedInRange = (name: string): string => (/[,:='\s]/.test(name) ? `'${name}'` : name);

/** `--shapes x:1x3x224x224`: the option with the shapes of several inputs. */
export const shapesOption = (
  inputs: readonly { readonly name: string; readonly shape: readonly number[] }[],
): string => `--shapes ${shellQuote(inputs.map(({ name, shape }) => shapeText(name, shape)).join(','))}`;

/** `x:1x3x224x224` */
export const shapeText = (name: string, dims: readonly number[]): string =>
  `${quotedInRange(name)}:${dims.length === 0 ? 'scalar' : dims.join('x')}`;
