import type { AskedCheck } from './checks.js';
import type { AskedTolerance } from './tolerance.js';

/** Values of options as the command line takes them. */
export const toleranceText = ({ name, value }: AskedTolerance): string => `${prefix(name)}${value}`;

export const prefix = (name: string | null): string => (name === null ? '' : `${quoted(name)}:`);

/** Shapes are split at commas, so a name that holds one is quoted. */
export const quoted = (name: string): string => (name.includes(',') ? `'${name}'` : name);

export const checkText = ({ name, kind, threshold }: AskedCheck): string =>
  `${prefix(name)}${kind}${threshold === null ? '' : `=${threshold}`}`;
