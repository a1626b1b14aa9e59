// Runs one call of the addon and prints `{events, result}` or `{events, error}`: node drive.mjs <addon> build|probe|gpus|gpuState <request as JSON>
import { createRequire } from 'node:module';

const [addonPath, call, request, cancelAfterMs] = process.argv.slice(2);
const addon = createRequire(import.meta.url)(addonPath);
const events = [];
const answer = (content) => process.stdout.write(`${JSON.stringify({ events, ...content })}\n`);
const failed = ({ code, message, details }) => answer({ error: { code, message, details } });

try {
  if (['probe', 'gpus', 'gpuState'].includes(call)) answer({ result: addon[call](JSON.parse(request)) });
  else {
    const job = addon[call](JSON.parse(request), (event) => events.push(event));
    if (cancelAfterMs !== undefined) setTimeout(() => job.cancel(), Number(cancelAfterMs));
    await job.done.then((result) => answer({ result }), failed);
    // Asking a job that is over to stop does nothing, also after its memory was collected.
    job.cancel();
  }
} catch (error) {
  failed(error);
}
