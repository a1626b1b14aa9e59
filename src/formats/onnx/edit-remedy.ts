import { quotedName } from '../../base/options/readers.js';
import { shellQuote } from '../../base/process/shell-quote.js';
import type { ModelProto } from './onnx_pb.js';
import { type OpenDimension, openDimensions } from './open-dimensions.js';
import { interfaceOf } from './value-facts.js';

/** The sentence with the line that edits a model as steps of `trtforge edit` state; the copy is written beside it, named after the last of them. */
export function editRemedy(path: string, steps: readonly string[]): string {
  const file = path.replace(/^-/, './-');
  const last = steps.findLast((word) => word.startsWith('--'))?.slice('--'.length);
  const words = [file, '-o', `${file.replace(/\.onnx$/i, '')}.${last}.onnx`, ...steps];
  return `Edit the model: \`trtforge edit ${words.map(shellQuote).join(' ')}\`.`;
}

/** A step that gives an open dimension a size or a name. */
const setting = (dimension: string, becomes: string | number): readonly string[] => [
  '--set-dim',
  `${quotedName(dimension)}=${becomes}`,
];

const placeOf = ({ symbol, places: [first] }: OpenDimension): string =>
  symbol ?? (first === undefined ? '' : `${first.input}:${first.axis}`);

/** Steps that fix every dimension that the inputs leave open, at a size that models of the kind take: one for a batch. */
export const fixingAll = (proto: ModelProto): readonly string[] =>
  openDimensions(interfaceOf(proto).inputs).flatMap((dimension) =>
    setting(placeOf(dimension), dimension.tries[0] ?? 1),
  );

/**
 * Steps that leave no dimension of the inputs in doubt: one that runs with a single size gets it, by its name as inferred shapes have it (`batch`, `x[0]` without one),
 * and every other axis without a name gets one of its own, as nothing states which are the same.
 */
export function settlingSteps(proto: ModelProto, sizes: ReadonlyMap<string, number>): readonly string[] {
  const open = openDimensions(interfaceOf(proto).inputs);
  const taken = new Set(open.flatMap(({ symbol }) => symbol ?? []));
  return open.flatMap((dimension) => {
    const { symbol, isBatch, places } = dimension;
    const size = symbol === null ? undefined : sizes.get(symbol);
    if (size !== undefined) return setting(placeOf(dimension), size);
    if (symbol !== null) return [];
    return places.flatMap(({ input, axis }) => {
      const single = sizes.get(`${input}[${axis}]`);
      if (single !== undefined) return setting(`${input}:${axis}`, single);
      const stem = isBatch ? 'batch' : `${input.replace(/\W/g, '_')}_axis${axis}`;
      let name = stem;
      for (let count = 2; taken.has(name); count++) name = `${stem}_${count}`;
      taken.add(name);
      return setting(`${input}:${axis}`, name);
    });
  });
}
