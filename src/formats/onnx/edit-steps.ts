import { quotedName } from '../../base/options/readers.js';
import { shellQuote } from '../../base/text/shell-line.js';
import { freeName } from './graph.js';
import type { ModelLike } from './model.js';
import type { ModelProto } from './onnx_pb.js';
import { type OpenDimension, openDimensions } from './open-dimensions.js';
import { openedSize } from './opened-size.js';
import { interfaceOf } from './values.js';

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
 * Steps that leave no dimension of the inputs in doubt. One that runs with a single size, by its name as inferred shapes have it (`batch`, `x[0]` without one), is opened, or gets
 * that size where it cannot be; every other axis without a name gets one of its own, as nothing states which are the same.
 */
export function settlingSteps(model: ModelLike, sizes: ReadonlyMap<string, number>): readonly string[] {
  const open = openDimensions(interfaceOf(model.proto).inputs);
  const taken = new Set(open.flatMap(({ symbol }) => symbol ?? []));
  return open.flatMap((dimension) => {
    const { symbol, isBatch, places } = dimension;
    const all = symbol === null ? places.map((place) => [place]) : [places];
    return all.flatMap((places) => {
      const [{ input, axis } = { input: '', axis: 0 }] = places;
      const single = sizes.get(symbol ?? `${input}[${axis}]`);
      if (symbol !== null && single === undefined) return [];
      const stem = isBatch ? 'batch' : `${input.replace(/\W/g, '_')}_axis${axis}`;
      const name = symbol ?? freeName(taken, stem);
      const isSingle = single !== undefined && typeof openedSize(model, places, name, single) === 'string';
      return isSingle ? setting(symbol ?? `${input}:${axis}`, single) : setting(`${input}:${axis}`, name);
    });
  });
}
