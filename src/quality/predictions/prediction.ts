import { z } from 'zod';
import { formatCount, formatShare } from '../../base/text/quantity.js';
import { iou } from './decode.js';

/** Cells over an area, row by row: index of a label, and of how many cells it is. */
const grid = {
  columns: z.int().positive().max(200),
  rows: z.int().positive().max(200),
  runs: z.array(z.tuple([z.int().nonnegative(), z.int().positive()])),
};
const isFilled = ({ columns, rows, runs }: z.infer<z.ZodObject<typeof grid>>): boolean =>
  runs.reduce((sum, [, cells]) => sum + cells, 0) === columns * rows;

const boxSchema = z.object({
  label: z.string(),
  score: z.number(),
  /** Left, top, width, height in pixels of the picture. */
  box: z.tuple([z.number(), z.number(), z.number(), z.number()]),
  /** Of a segmented object: the cells of a grid over its box that are of it (1) and that are not (0). */
  mask: z.object(grid).refine(isFilled).optional(),
  /** Of two predictions of one picture: whether only this one has it. */
  alone: z.boolean().optional(),
});
export type Box = z.infer<typeof boxSchema>;

/** The class of each place: a grid over a part of the picture, in its pixels. */
const maskSchema = z
  .object({
    kind: z.literal('mask'),
    area: z.object({ left: z.number(), top: z.number(), width: z.number(), height: z.number() }),
    ...grid,
    labels: z.array(z.string()),
  })
  .refine(isFilled);

/** What the outputs of a network state of a picture. */
export const predictionSchema = z.discriminatedUnion('kind', [
  /** The strongest first. */
  z.object({ kind: z.literal('boxes'), boxes: z.array(boxSchema) }),
  /** The class with the highest score. */
  z.object({ kind: z.literal('class'), label: z.string(), probability: z.number() }),
  maskSchema,
  /** What was spoken in a recording. */
  z.object({ kind: z.literal('text'), text: z.string() }),
]);
export type Prediction = z.infer<typeof predictionSchema>;
export type Mask = Extract<Prediction, { readonly kind: 'mask' }>;

/** Boxes of one class that overlap at least so much are the same. */
const SAME_BOX = 0.5;

/** Two predictions of one picture side by side: the decisions that only the reference takes (`lost`) and only the candidate (`new`). */
export interface PredictionPair {
  readonly reference: Prediction | null;
  readonly candidate: Prediction | null;
  readonly lost: number;
  readonly new: number;
}

/** Boxes are the same that have one class and overlap by half, the strongest first; of masks each cell of the grid is a decision. */
export function pairOf(reference: Prediction | null, candidate: Prediction | null): PredictionPair {
  const both = { reference, candidate };
  if (reference?.kind === 'boxes')
    return pairOfBoxes(reference, candidate?.kind === 'boxes' ? candidate : null);
  if (reference?.kind === 'mask' && candidate?.kind === 'mask') {
    const [theirs, ours] = [cellsOf(reference), cellsOf(candidate)];
    const turned = theirs.filter((label, at) => label !== ours[at]).length;
    return { ...both, lost: turned, new: turned };
  }
  const decision = (one: Prediction | null) =>
    one?.kind === 'class' ? one.label : one?.kind === 'text' ? one.text : undefined;
  const stated = decision(reference);
  const isSame =
    stated === undefined || (candidate?.kind === reference?.kind && decision(candidate) === stated);
  return { ...both, lost: isSame ? 0 : 1, new: isSame || candidate === null ? 0 : 1 };
}

type Boxes = Extract<Prediction, { readonly kind: 'boxes' }>;

function pairOfBoxes(reference: Boxes, candidate: Boxes | null): PredictionPair {
  const [theirs, ours] = [reference.boxes, candidate?.boxes ?? []];
  const corners = Float32Array.from(
    [...theirs, ...ours].flatMap(({ box: [left, top, width, height] }) => [
      ...[left, top],
      ...[left + width, top + height],
    ]),
  );
  const taken = new Set<number>();
  const kept = new Set<number>();
  for (const [index, { label }] of theirs.entries()) {
    const overlap = (at: number) => iou(corners, index, theirs.length + at);
    const [best] = ours
      .flatMap((other, at) =>
        other.label === label && !taken.has(at) && overlap(at) >= SAME_BOX ? [at] : [],
      )
      .sort((a, b) => overlap(b) - overlap(a));
    if (best === undefined) continue;
    taken.add(best);
    kept.add(index);
  }
  const marked = (boxes: readonly Box[], same: ReadonlySet<number>): Boxes => ({
    kind: 'boxes',
    boxes: boxes.map((box, at) => ({ ...box, alone: !same.has(at) })),
  });
  return {
    reference: marked(theirs, kept),
    candidate: candidate && marked(ours, taken),
    lost: theirs.length - kept.size,
    new: ours.length - taken.size,
  };
}

/** The label of each cell, row by row. */
const cellsOf = ({ labels, runs }: Mask): readonly string[] =>
  runs.flatMap(([label, count]) => Array.from({ length: count }, () => labels[label] ?? ''));

/** In a sentence the first so many are named. */
const NAMED = 8;

/** `3 boxes: dog 0.91, cat 0.55, cat 0.31`; those that only one side has are marked by `alone`. */
export function predictionText(prediction: Prediction | null, alone: string): string {
  switch (prediction?.kind) {
    case undefined:
      return 'not decoded';
    case 'text':
      return prediction.text === '' ? 'no word' : `“${prediction.text}”`;
    case 'class':
      return `${prediction.label} ${formatShare(prediction.probability)}`;
    case 'boxes': {
      const { boxes } = prediction;
      const named = boxes
        .toSorted((a, b) => Number(b.alone ?? false) - Number(a.alone ?? false))
        .slice(0, NAMED)
        .map((box) => `${box.label} ${box.score}${box.alone === true ? ` (${alone})` : ''}`);
      const more = boxes.length - named.length;
      const all = [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
      return boxes.length === 0
        ? 'no box'
        : `${formatCount(boxes.length)} ${boxes.length === 1 ? 'box' : 'boxes'}: ${all}`;
    }
    case 'mask': {
      const cells = cellsOf(prediction);
      const counts = new Map<string, number>();
      for (const cell of cells) counts.set(cell, (counts.get(cell) ?? 0) + 1);
      const shares = [...counts].sort(([, a], [, b]) => b - a).slice(0, NAMED);
      return shares.map(([label, count]) => `${label} ${formatShare(count / cells.length)}`).join(', ');
    }
  }
}
