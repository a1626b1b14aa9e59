import type { EngineLayer } from '../../engines/layers/result.js';
import type { RawLayers } from './measurer.js';
import type { LayerTimes } from './result.js';

/**
 * Times of layers beside what the inspector reports of each. Names are not unique: layers of one name meet in order, and those of other profiles are not
 * among them. A name that the inspector does not know stands alone.
 */
export function joinLayers(
  times: RawLayers['times'],
  layers: readonly EngineLayer[],
  profile: number,
): LayerTimes | null {
  const runs = Math.max(0, ...times.map((each) => each.runs));
  if (runs === 0) return null;
  const byName = new Map<string, EngineLayer[]>();
  for (const layer of layers) {
    if (layer.profile !== profile) continue;
    const named = byName.get(layer.name);
    if (named === undefined) byName.set(layer.name, [layer]);
    else named.push(layer);
  }
  const timed = times.map(({ name, ms, runs: count }) => {
    const bare = name.replace(/ \[profile \d{1,6}\]$/i, '');
    return { name: bare, ms: count === 0 ? 0 : ms / count, layer: byName.get(bare)?.shift() };
  });
  const totalMs = timed.reduce((sum, { ms }) => sum + ms, 0);
  return {
    runs,
    totalMs,
    layers: timed.map(({ name, ms, layer }) => ({
      index: layer?.index ?? null,
      name,
      type: layer?.type ?? null,
      precision: layer?.precision ?? null,
      tactic: layer?.tactic.name ?? layer?.tactic.value ?? null,
      onnxNodes: [...(layer?.onnxNodes ?? [])],
      ms,
      share: totalMs === 0 ? 0 : ms / totalMs,
    })),
  };
}
