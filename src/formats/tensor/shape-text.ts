import { shellQuote } from '../../base/process/shell-quote.js';

/** Names with characters that mean something in a range or a shape stand in quotes. */
export const quotedName = (name: string): string => (/[,:='\s]/.test(name) ? `'${name}'` : name);

/** `--shapes x:1x3x224x224`: the option with the shapes of several inputs. */
export const shapesOption = (
  inputs: readonly { readonly name: string; readonly shape: readonly number[] }[],
): string => `--shapes ${shellQuote(inputs.map(({ name, shape }) => shapeText(name, shape)).join(','))}`;

/** `x:1x3x224x224` */
export const shapeText = (name: string, dims: readonly number[]): string =>
  `${quotedName(name)}:${dims.length === 0 ? 'scalar' : dims.join('x')}`;
