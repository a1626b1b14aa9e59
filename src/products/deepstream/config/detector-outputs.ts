import type { Binding } from '../../../engines/runtime/session.js';
import { viewModel } from '../../../formats/onnx/model.js';

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
  if (one === undefined || outputs.some(({ shape }) => shape?.length !== 3)) return undefined;
  const dim = ({ shape }: Output, axis: number) => (typeof shape?.[axis] === 'number' ? shape[axis] : null);
  if (other === undefined) {
    const [first, second] = [dim(one, 1), dim(one, 2)];
    const names = { scores: one.name, boxes: one.name };
    if (second === 6 && (first ?? 0) <= MOST_ROWS) return { kind: 'end-to-end', ...names, classes: null };
    const isBoxes = first !== null && first > 4 && (second === null || second > first);
    return isBoxes ? { kind: 'boxes', ...names, classes: first - 4 } : undefined;
  }
  // With four classes both have the shape of boxes.
  const likely = outputs.filter((output) => dim(output, 2) === 4);
  const boxes = likely.find(({ name }) => /box/i.test(name)) ?? likely.at(-1);
  if (boxes === undefined || outputs.length > 2 || one.shape?.[1] !== other.shape?.[1]) return undefined;
  const scores = boxes === one ? other : one;
  return { kind: 'detr', scores: scores.name, boxes: boxes.name, classes: dim(scores, 2) };
}

/** The classes of each output of a plain classifier, [B,C], null where the shape does not tell; undefined for any other. */
export function classesOfClassifier(outputs: readonly Output[]): readonly (number | null)[] | undefined {
  const inner = outputs.map(({ shape }) => shape?.slice(1).filter((size) => size !== 1));
  if (inner.length === 0 || inner.some((dims) => dims?.length !== 1)) return undefined;
  return inner.map((dims) => (typeof dims![0] === 'number' ? dims![0] : null));
}

/** Tasks of Ultralytics' metadata whose outputs look like a detector's and are none. */
const others: readonly string[] = ['pose', 'obb', 'segment', 'classify'];

/** The task that the exporter left in a model (Ultralytics), where it is not detection. */
export const otherTask = ({ task = '' }: Readonly<Record<string, string>>): string | undefined =>
  others.includes(task) ? task : undefined;

const PASSES: ReadonlySet<string> = new Set([
  'Identity',
  'Cast',
  'Reshape',
  'Flatten',
  'Squeeze',
  'Unsqueeze',
]);

/** Outputs of a model that are no probabilities of a Softmax or Sigmoid. */
export const logitsOf = (path: string): readonly string[] =>
  viewModel(path, ({ proto }) => {
    const { node: nodes, output: outputs } = proto.graph!;
    const isLogits = (name: string): boolean => {
      const producer = nodes.find(({ output }) => output.includes(name));
      if (producer === undefined) return true;
      return PASSES.has(producer.opType)
        ? isLogits(producer.input[0] ?? '')
        : !['Softmax', 'Sigmoid'].includes(producer.opType);
    };
    return outputs.map(({ name }) => name).filter(isLogits);
  });
