// What every scenario works with: the addon over a fake library, its plans, and the words for shapes and bindings.
import { pathToFileURL } from 'node:url';

/** `play.mjs <addon wrapper> <addon> <library> <folder of plans> <scenario> [arguments]` */
const [wrapper, addonPath, inferenceLibrary, folder, , ...more] = process.argv.slice(2);

export { folder, inferenceLibrary };

const { loadAddon } = await import(pathToFileURL(wrapper).href);
export const addon = loadAddon(addonPath);

/** Arguments of the scenario that plays. */
export const given = more;
/** What a thread needs to be told so that it works over the same. */
export const workbenchArgs = [wrapper, addonPath, inferenceLibrary, folder];

export const openRequest = (plan) => ({
  inferenceLibrary,
  pluginLibrary: null,
  pluginPaths: [],
  planPath: `${folder}/${plan}.plan`,
  label: plan,
  device: 0,
  allowHostCode: false,
  weightBudget: null,
  verbose: false,
});
export const open = (plan, request = {}) =>
  addon.openEngine({ ...openRequest(plan), ...request }, () => {}).done;
export const build = () =>
  addon.build(
    {
      inferenceLibrary,
      parserLibrary: inferenceLibrary.replace(/[^/]*$/, 'parser.so'),
      pluginLibrary: null,
      modelPath: '/models/m.onnx',
      planPath: `${folder}/built.plan`,
      networkFlags: 0,
      parserFlags: 0,
      settings: [],
      profiles: [[{ input: 'x', values: false, min: [1, 64], opt: [8, 64], max: [32, 64] }]],
      computeCapabilities: [],
      pluginPaths: [],
      timingCachePaths: [],
      timingCacheOutputPath: null,
      verbose: false,
      keepBuilder: false,
    },
    () => {},
  ).done;
export const measure = (engine, request) => addon.measure(engine, request).done;
export const shape = (name, dims, values = null) => ({ name, shape: dims, values });
export const hosts = (...names) => names.map((name) => ({ name, kind: 'host' }));
export const device = (name, memory, offset = 0) => ({ name, kind: 'device', memory, offset });
export const outcome = async (attempt) => {
  try {
    const result = await (typeof attempt === 'function' ? attempt() : attempt);
    return result === undefined ? 'done' : result;
  } catch (error) {
    return { code: error.code, message: error.message, details: error.details };
  }
};
export const contextOf = (engine, profile = 0, profiling = false) =>
  engine.createContext({ profile, profiling }).done;
export const affine = async (engine, { rows = 2, graph = true, profile = 0, context } = {}) => {
  const made = context ?? (await contextOf(engine, profile));
  const call = await made.prepare({ shapes: [shape('x', [rows, 64])], bindings: hosts('x', 'y'), graph })
    .done;
  return { context: made, call };
};
export const freeBytes = async (device = 0) => {
  const engine = await open('affine', { device });
  const { freeBefore } = engine.facts.gpuMemory;
  await engine.close().done;
  return freeBefore;
};
export const tick = () => new Promise((resolve) => setImmediate(resolve));
export const collect = async () => {
  for (let round = 0; round < 8; round++) {
    globalThis.gc();
    await tick();
  }
};
