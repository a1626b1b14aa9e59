// Opens an engine, measures on it and prints `{result}` or `{error}`: node drive-measure.mjs <addon> <{open, measure, cancelAfterMs} as JSON>
import { createRequire } from 'node:module';

const [addonPath, text] = process.argv.slice(2);
const addon = createRequire(import.meta.url)(addonPath);
const { open, measure, cancelAfterMs } = JSON.parse(text);
const inputs = measure.inputs.map(({ name, bytes }) => ({ name, data: new Uint8Array(bytes) }));
const columns = ([key, value]) => [key, ArrayBuffer.isView(value) ? Array.from(value) : value];
const started = performance.now();
const answer = (content) =>
  process.stdout.write(`${JSON.stringify({ ...content, ms: performance.now() - started })}\n`);

try {
  const { handle } = await addon.openEngine(open, () => {}).done;
  const job = addon.measure(handle, { ...measure, inputs });
  if (cancelAfterMs !== undefined) setTimeout(() => job.cancel(), cancelAfterMs);
  const result = await job.done.finally(() => addon.engineClose(handle).done);
  answer({ result: Object.fromEntries(Object.entries(result).map(columns)) });
} catch ({ code, message, details }) {
  answer({ error: { code, message, details } });
}
