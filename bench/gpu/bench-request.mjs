import { defaultMode, defaultRequest } from '../../dist/quality/bench/options.js';

/** A request of the bench room, for trtforge and for trtexec alike. */
export const benchRequest = (engine, shapes, mode = {}, duration = 1000) => ({
  ...defaultRequest(engine),
  ...(shapes === null ? {} : { shapes: { kind: 'shapes', shapes: new Map(Object.entries(shapes)) } }),
  mode: { ...defaultMode, spinWait: true, durationMs: duration, ...mode },
  wait: true,
});

/** Every input of a profile at a batch, the rest at its optimum. */
export const atBatch = (profile, batch) =>
  Object.fromEntries(Object.entries(profile).map(([name, { opt }]) => [name, [batch, ...opt.slice(1)]]));
