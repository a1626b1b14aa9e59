import { defaultMode } from '../../dist/bench/request.js';

/** A request of the bench room, for trtforge and for trtexec alike. */
export const benchRequest = (engine, batch, mode = {}, duration = 1000) => ({
  engine,
  toolchain: undefined,
  device: 0,
  plugins: [],
  allowHostCode: false,
  shapes: batch === null ? { kind: 'optimum' } : { kind: 'shapes', shapes: new Map(Object.entries(batch)) },
  inputs: { seed: 1, ranges: [], files: [] },
  mode: { ...defaultMode, spinWait: true, durationMs: duration, ...mode },
  layers: false,
  samples: undefined,
  wait: true,
});

/** Every input of a profile at a batch, the rest at its optimum. */
export const atBatch = (profile, batch) =>
  Object.fromEntries(Object.entries(profile).map(([name, { opt }]) => [name, [batch, ...opt.slice(1)]]));
