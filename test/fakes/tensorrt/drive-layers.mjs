// Runs an engine with profiling and prints the times of its layers: node drive-layers.mjs <addon> <{open, runs} as JSON>; a run is the value of FAKE_LAYERS.
import { createRequire } from 'node:module';

const [addonPath, text] = process.argv.slice(2);
const addon = createRequire(import.meta.url)(addonPath);
const { open, runs, profiling } = JSON.parse(text);
const shapes = [{ name: 'x', shape: [1, 64], values: null }];
const bindings = ['x', 'y'].map((name) => ({ name, memory: null, offset: 0 }));

try {
  const { handle } = await addon.openEngine(open, () => {}).done;
  const context = await addon.createContext(handle, { profile: 0, profiling }).done;
  const call = await addon.prepareCall(context, { shapes, bindings, graph: false, smallTensors: 'copied' })
    .done;
  for (const layers of runs) {
    process.env.FAKE_LAYERS = layers;
    addon.callLaunch(call.handle);
  }
  const layers = addon.contextLayerTimes(context);
  await addon.engineClose(handle).done;
  process.stdout.write(`${JSON.stringify({ result: layers })}\n`);
} catch ({ code, message }) {
  process.stdout.write(`${JSON.stringify({ error: { code, message } })}\n`);
}
