// Opens an engine, measures on it and prints `{result}` or `{error}`: node drive-measure.mjs <addon> <{open, measure, cancelAfterMs, exitAfterMs} as JSON>
import { loadAddon } from '../../../dist/addon/addon.js';

const [addonPath, text] = process.argv.slice(2);
const { open, measure, cancelAfterMs, exitAfterMs } = JSON.parse(text);
const addon = loadAddon(addonPath);
const inputs = measure.inputs.map(({ name, bytes }) => ({ name, data: new Uint8Array(bytes) }));
const columns = ([key, value]) => [key, ArrayBuffer.isView(value) ? Array.from(value) : value];
const answer = (content) => process.stdout.write(`${JSON.stringify(content)}\n`);

try {
  const engine = await addon.openEngine(open, () => {}).done;
  const job = addon.measure(engine, { ...measure, inputs });
  if (cancelAfterMs !== undefined) setTimeout(() => job.cancel(), cancelAfterMs);
  if (exitAfterMs !== undefined) setTimeout(() => process.exit(3), exitAfterMs);
  const result = await job.done.finally(() => engine.close().done);
  answer({ result: Object.fromEntries(Object.entries(result).map(columns)) });
} catch ({ code, message, details }) {
  answer({ error: { code, message, details } });
}
