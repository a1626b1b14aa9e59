import { attributeOf } from '../../formats/onnx/attributes.js';
import { nodeLabel, visitMainGraphs } from '../../formats/onnx/graph.js';
import type { ModelLike } from '../../formats/onnx/model.js';
import { inferShapes } from '../../formats/onnx/shapes/infer.js';
import { inlined, usesOf } from '../../formats/precision/normalise.js';
import { elementCount } from '../../formats/tensor/dtype.js';
import { isIntegerDtype, type NamedTensors, numbersOf, type Tensor } from '../../formats/tensor/tensor.js';
import { rowsOf } from './input-range.js';

/** Parts that no sample reached, so that a verdict over samples cannot see them; `message` is one sentence. */
export interface Unreached {
  readonly branches: readonly { node: string; branch: 'then' | 'else'; message: string }[];
  /** `tensor` is the table, or the one-hot value that chooses its row. */
  readonly tables: readonly {
    node: string;
    tensor: string;
    rows: number;
    reached: number;
    message: string;
  }[];
}

/** Larger inputs decide no branch by themselves. */
const MOST_ELEMENTS = 256;

/**
 * The branches of If and the rows of tables that none of these samples reached, as far as integers and booleans decide them. Nothing runs. A condition that floats decide is left out.
 */
export function findUnreached(model: ModelLike, samples: readonly NamedTensors[]): Unreached {
  return { branches: branches(inlined(model), samples), tables: tables(model, samples) };
}

const isWhole = ({ dtype }: Tensor) => isIntegerDtype(dtype) || dtype === 'bool';

function branches(model: ModelLike, samples: readonly NamedTensors[]): Unreached['branches'] {
  const ifs = [...visitMainGraphs(model.proto)].flatMap(({ nodes }) =>
    nodes.filter(({ opType }) => opType === 'If'),
  );
  if (ifs.length === 0) return [];
  const shapes = new Map([...(samples[0] ?? [])].map(([name, { shape }]) => [name, shape] as const));
  // Inference enters both branches unless it knows the condition.
  const entered = (elements?: ReadonlyMap<string, readonly number[]>) =>
    inferShapes(model, shapes, undefined, elements).nodes;
  const open = entered();
  const small = samples.map((sample) =>
    [...sample].flatMap(([name, tensor]): [string, number[]][] =>
      isWhole(tensor) && elementCount(tensor.shape) <= MOST_ELEMENTS ? [[name, [...numbersOf(tensor)]]] : [],
    ),
  );
  const distinct = new Map(small.map((elements) => [JSON.stringify(elements), new Map(elements)]));
  const taken = [...distinct.values()].map(entered);
  return ifs.flatMap((node) => {
    if (!taken.some((nodes) => nodes.has(node))) return [];
    return (['then', 'else'] as const).flatMap((branch) => {
      const inside = attributeOf(node, `${branch}_branch`)?.g?.node[0];
      if (inside === undefined || !open.has(inside) || taken.some((nodes) => nodes.has(inside))) return [];
      const label = nodeLabel(node);
      return [{ node: label, branch, message: `No sample took the ${branch} branch of ${label}.` }];
    });
  });
}

function tables(model: ModelLike, samples: readonly NamedTensors[]): Unreached['tables'] {
  const uses = usesOf(model);
  const found = new Map<
    string,
    {
      readonly node: string;
      readonly rows: number;
      readonly reached: Set<number>;
      readonly input: string | null;
    }
  >();
  const [first = new Map<string, Tensor>()] = samples;
  for (const [name, tensor] of first) {
    if (!isWhole(tensor)) continue;
    for (const use of uses.reached(name, true)) {
      const { node, offset, scale } = use;
      const isOneHot = node.opType === 'Equal' || node.opType === 'OneHot';
      const table = (isOneHot ? node.output[0] : node.input[0]) ?? '';
      if (!isOneHot && uses.weightShape(table) === undefined) continue;
      const bound = rowsOf(use, uses, { shapes: new Map(), sizes: new Map(), longest: 1 });
      if (bound === undefined) continue;
      const { from, rows } = bound;
      const input = use.joined === undefined ? null : name;
      const entry = found.get(table) ?? { node: nodeLabel(node), rows, reached: new Set(), input };
      found.set(table, entry);
      for (const sample of samples)
        for (const value of numbersOf(sample.get(name) ?? tensor)) {
          const row = Math.trunc(value * scale + offset) - from;
          if (row >= -rows && row < rows) entry.reached.add(row < 0 && !isOneHot ? row + rows : row);
        }
    }
  }
  return [...found].flatMap(
    ([
      tensor,
      {
        node,
        rows,
        reached: { size: reached },
        input,
      },
    ]) =>
      reached >= rows
        ? []
        : [
            {
              node,
              tensor,
              rows,
              reached,
              message:
                input === null
                  ? `The samples reached ${reached} of the ${rows} rows of ${tensor} (${node}).`
                  : `The samples have ${reached} values of ${input} for the ${rows} rows of ${tensor} (${node}), whose index is computed from it and others.`,
            },
          ],
  );
}
