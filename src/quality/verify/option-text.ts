import { quotedName } from '../../engines/store/build-args.js';
import type { AskedCheck } from './checks.js';
import type { AskedTolerance } from './tolerance.js';

/** Values of options as the command line takes them. */
export const toleranceText = ({ name, value }: AskedTolerance): string => `${prefix(name)}${value}`;

export const prefix = (name: string | null): string => (name === null ? '' : `${quotedName(name)}:`);

export const checkText = ({ name, kind, threshold }: AskedCheck): string =>
  `${prefix(name)}${kind}${threshold === null ? '' : `=${threshold}`}`;
