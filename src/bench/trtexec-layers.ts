import type { EngineLayer, EngineLayers } from '../engine/layers-schema.js';
import type { ExportedProfile } from '../trtexec/exports.js';
import type { LayerTimes } from './result.js';

/** Per-layer times of trtexec beside what the engine's inspector says of each layer; layers of one name meet in order. */
export function exportedLayerTimes(profile: ExportedProfile, engine: EngineLayers): LayerTimes | null {
  if (profile.count === 0) return null;
  const byName = new Map<string, EngineLayer[]>();
  for (const layer of engine.layers) byName.set(layer.name, [...(byName.get(layer.name) ?? []), layer]);
  const totalMs = profile.layers.reduce((sum, { timeMs }) => sum + timeMs, 0) / profile.count;
  return {
    runs: profile.count,
    totalMs,
    layers: profile.layers.map(({ name, timeMs }) => {
      const layer = byName.get(name)?.shift();
      const ms = timeMs / profile.count;
      return {
        index: layer?.index ?? null,
        name,
        type: layer?.type ?? null,
        precision: layer?.precision ?? null,
        tactic: layer?.tactic.name ?? layer?.tactic.value ?? null,
        onnxNodes: [...(layer?.onnxNodes ?? [])],
        ms,
        share: totalMs === 0 ? 0 : ms / totalMs,
      };
    }),
  };
}
