import type { Binding } from '../../../engines/runtime/session.js';

export type Output = Pick<Binding, 'name' | 'shape'>;

/** Outputs of a detector that trtforge knows how to read. */
export interface Layout {
  /** `boxes` [B,4+C,N]: centre, size, a score a class, in pixels · `end-to-end` [B,N,6]: corners, score, class, in pixels · `detr`: logits [B,Q,C] and boxes [B,Q,4] in 0..1. */
  readonly kind: 'boxes' | 'end-to-end' | 'detr';
  readonly scores: string;
  readonly boxes: string;
  /** null where the shape does not tell. */
  readonly classes: number | null;
}

/** Rows that an end-to-end head has at most; a head before suppression has thousands. */
const MOST_ROWS = 1000;

/** The layout by shapes and, of DETR, names; undefined for any other. */
export function layoutOf(outputs: readonly Output[]): Layout | undefined {
  const [one, other] = outputs;
  if (outputs.length === 1 && one?.shape?.length === 3) {
    const [, first, second] = one.shape;
    const names = { scores: one.name, boxes: one.name };
    if (second === 6 && !(typeof first === 'number' && first > MOST_ROWS))
      return { kind: 'end-to-end', ...names, classes: null };
    const isWide = typeof second !== 'number' || (typeof first === 'number' && second > first);
    return typeof first === 'number' && first > 4 && isWide
      ? { kind: 'boxes', ...names, classes: first - 4 }
      : undefined;
  }
  if (outputs.length !== 2 || one?.shape?.length !== 3 || other?.shape?.length !== 3) return undefined;
  const boxes =
    one.shape[2] === 4 && (other.shape[2] !== 4 || /box/i.test(one.name))
      ? one
      : other.shape[2] === 4
        ? other
        : undefined;
  if (boxes === undefined || one.shape[1] !== other.shape[1]) return undefined;
  const scores = boxes === one ? other : one;
  const classes = scores.shape?.[2];
  return {
    kind: 'detr',
    scores: scores.name,
    boxes: boxes.name,
    classes: typeof classes === 'number' ? classes : null,
  };
}
