import type { LayerTimes } from '../../../quality/bench/result.js';
import type { EngineTimes } from './options.js';
import type { Advice } from './result.js';
import type { Unit } from './units.js';

/** The least speed-up of a quantized part: ModelOpt's bound for its own search. */
const WORTHWHILE = 1.02;
/** Undoing a part moves the borders of fusions, so the rest is looked at again, at most so often. */
const MOST_ROUNDS = 3;
/** Layers listed as the cause. */
const LISTED = 10;

type Latency = NonNullable<Advice['latency']>;
type Difference = Latency['slower'][number];

/** One set of units with its engine. */
interface Timed {
  readonly units: readonly Unit[];
  readonly times: EngineTimes;
}

interface Undone {
  readonly units: readonly Unit[];
  readonly undone: readonly Difference[];
  readonly slower: readonly Difference[];
  readonly isSlower: boolean;
  readonly speedup: number;
}

/**
 * Takes out of a choice what is not worth its codes: units whose layers are not faster than without, as long as that makes the engine faster, and at the end all of
 * them where the engine is not faster than the one without. `keepsBudget` judges what is left: fewer codes are not always closer.
 */
export async function undoSlow(
  chosen: readonly Unit[],
  time: (units: readonly Unit[]) => Promise<EngineTimes>,
  keepsBudget: (units: readonly Unit[]) => Promise<boolean>,
): Promise<Undone> {
  const without = await time([]);
  let current: Timed = { units: chosen, times: await time(chosen) };
  const first = current.times;
  const firstDifferences = layerDifferences(without.layers, first.layers, chosen);
  const undone: Difference[] = [];
  for (let round = 0; round < MOST_ROUNDS && current.units.length > 0; round++) {
    const slow = layerDifferences(without.layers, current.times.layers, current.units).filter(
      ({ unit, ms }) => unit !== null && ms.after * WORTHWHILE > ms.before,
    );
    const units = current.units.filter(({ name }) => slow.every(({ unit }) => unit !== name));
    if (units.length === current.units.length || units.length === 0) break;
    const times = await time(units);
    if (times.medianMs >= current.times.medianMs || !(await keepsBudget(units))) break;
    current = { units, times };
    undone.push(...slow);
  }
  if (current.units.length > 0 && current.times.medianMs * WORTHWHILE > without.medianMs) {
    undone.push(
      ...layerDifferences(without.layers, current.times.layers, current.units).filter(
        ({ unit }) => unit !== null,
      ),
    );
    current = { units: [], times: without };
  }
  return {
    units: current.units,
    undone,
    isSlower: first.medianMs > without.medianMs,
    slower: firstDifferences
      .filter(({ ms }) => ms.after > ms.before)
      .sort((a, b) => b.ms.after - b.ms.before - (a.ms.after - a.ms.before))
      .slice(0, LISTED),
    speedup: without.medianMs / current.times.medianMs,
  };
}

/** The time of each unit in both engines, by the ONNX nodes of their layers; a layer of several units counts for each in equal parts. */
export function layerDifferences(
  before: LayerTimes,
  after: LayerTimes,
  units: readonly Unit[],
): readonly Difference[] {
  const [old, now] = [timesOf(before, units), timesOf(after, units)];
  return [...units, null].map((unit) => {
    const key = unit?.name ?? null;
    return {
      unit: key,
      ms: { before: old.get(key)?.ms ?? 0, after: now.get(key)?.ms ?? 0 },
      layers: [...(now.get(key)?.layers ?? [])],
    };
  });
}

interface UnitTime {
  ms: number;
  readonly layers: string[];
}

/** Under null what changes types and formats for no unit. */
function timesOf({ layers }: LayerTimes, units: readonly Unit[]): ReadonlyMap<string | null, UnitTime> {
  const times = new Map<string | null, UnitTime>();
  for (const { name, type, onnxNodes, ms } of layers) {
    const own = units.filter((unit) => onnxNodes.some((node) => unit.nodes.includes(node)));
    const owners =
      own.length > 0 ? own : units.filter((unit) => onnxNodes.some((node) => isPairOf(unit, node)));
    const isConversion =
      /reformat/i.test(type ?? name) || onnxNodes.some((node) => /QuantizeLinear$/.test(node));
    if (owners.length === 0 && !isConversion) continue;
    for (const key of owners.length === 0 ? [null] : owners.map((unit) => unit.name)) {
      const time = times.get(key) ?? { ms: 0, layers: [] };
      time.ms += ms / Math.max(1, owners.length);
      time.layers.push(name);
      times.set(key, time);
    }
  }
  return times;
}

/** Pairs are named after the activation that they stand behind. */
const isPairOf = ({ tensors }: Unit, node: string): boolean =>
  /QuantizeLinear$/.test(node) &&
  tensors.some(
    (tensor) => node.startsWith(`${tensor}_quantized`) || node.startsWith(`${tensor}_dequantized`),
  );
