// `onnxruntime.mjs <addon> <libonnxruntime.so> <model: y = -(x + sum), next = x + sum> <slow model: y of x> <scenario>`: prints what came out as a line of JSON.
import { createRequire } from 'node:module';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

const [addonPath, library, adder, slow, scenario] = workerData ?? process.argv.slice(2);
const addon = createRequire(import.meta.url)(addonPath);

const open = async (modelPath) =>
  (
    await addon.ortOpen({
      library,
      modelPath,
      threads: 1,
      providers: [],
      config: [],
      profilePrefix: null,
      device: 0,
    }).done
  ).handle;
const tensor = (name, shape, values) => ({
  name,
  type: 1,
  shape,
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});
const bind = (session, inputs, outputs, resident = false) =>
  addon.ortBind(session, { inputs, outputs: outputs.map((name) => ({ name, feeds: null })), resident });
const first = (call) => new Float32Array(addon.ortOutputs(call)[0].data)[0];
const outcome = async (attempt) => {
  try {
    await attempt();
    return 'done';
  } catch (error) {
    return error.code;
  }
};
const matrix = (session) => bind(session, [tensor('x', [400, 400], new Array(160_000).fill(1e-3))], ['y']);
const collect = async () => {
  for (let round = 0; round < 8; round++) {
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
};

const scenarios = {
  async runs() {
    const session = await open(adder);
    const zeros = tensor('sum', [2], [0, 0]);
    const x = tensor('x', [2], [1, 2]);
    const start = addon.ortBind(session, {
      inputs: [x, zeros],
      outputs: [
        { name: 'next', feeds: 'sum' },
        { name: 'y', feeds: null },
      ],
      resident: false,
    });
    await addon.ortRun(start);
    const seen = [first(start)];
    const step = addon.ortBind(session, {
      inputs: [x],
      outputs: [
        { name: 'next', feeds: 'sum' },
        { name: 'y', feeds: null },
      ],
      resident: false,
    });
    for (let run = 0; run < 50; run++) await addon.ortRun(step);
    seen.push(first(step));
    const resident = bind(session, [x, zeros], ['y'], true);
    for (let run = 0; run < 5; run++) await addon.ortRun(resident);
    const kept = addon.ortOutputs(resident).length;
    // Posted together, they follow one another.
    await Promise.all(Array.from({ length: 20 }, () => addon.ortRun(step)));
    seen.push(first(step));
    await addon.ortClose(session).done;
    return { seen, kept };
  },
  async refusals() {
    const session = await open(adder);
    const [x, sum] = [tensor('x', [2], [1, 2]), tensor('sum', [2], [0, 0])];
    const run = (inputs, outputs) => outcome(() => addon.ortRun(bind(session, inputs, outputs)));
    const result = {
      shape: await run([tensor('x', [1, 2], [1, 2]), sum], ['y']),
      missing: await run([x], ['y']),
      input: await run([x, sum, tensor('z', [1], [1])], ['y']),
      output: await run([x, sum], ['nothing']),
      bytes: await outcome(() => bind(session, [{ ...x, shape: [200] }, sum], ['y'])),
      file: await outcome(() => open('/nowhere.onnx')),
      library: await outcome(() => addon.ortProbe(adder)),
      handle: await outcome(() => addon.ortRun({})),
      after: await run([x, sum], ['y']),
    };
    await addon.ortClose(session).done;
    return { ...result, closed: await run([x, sum], ['y']) };
  },
  async cancelled() {
    const session = await open(slow);
    const call = matrix(session);
    const running = outcome(() => addon.ortRun(call));
    setTimeout(() => addon.ortCancel(call), 50);
    const stopped = await running;
    const again = await outcome(() => addon.ortRun(call));
    const other = await outcome(() => addon.ortRun(matrix(session)));
    await addon.ortClose(session).done;
    return { stopped, again, other };
  },
  async closing() {
    const session = await open(slow);
    const flying = [0, 1, 2].map(() => outcome(() => addon.ortRun(matrix(session))));
    await new Promise((resolve) => setTimeout(resolve, 50));
    await addon.ortClose(session).done;
    await addon.ortClose(session).done;
    return { flying: await Promise.all(flying) };
  },
  async collected() {
    for (let round = 0; round < 5; round++) {
      const call = bind(await open(adder), [tensor('x', [2], [1, 2]), tensor('sum', [2], [0, 0])], ['y']);
      await addon.ortRun(call);
      await collect();
      first(call);
    }
    await collect();
    return { collected: true };
  },
  async exits() {
    void addon.ortRun(matrix(await open(slow))).catch(() => {});
    setTimeout(() => process.exit(7), 50);
    await new Promise((resolve) => setTimeout(resolve, 5000));
  },
  async threads() {
    const codes = [];
    for (let round = 0; round < 3; round++) {
      const worker = new Worker(new URL(import.meta.url), {
        workerData: [addonPath, library, adder, slow, 'fly'],
      });
      await new Promise((resolve) => worker.once('message', resolve));
      codes.push(await worker.terminate());
    }
    return { codes };
  },
  async fly() {
    const { parentPort } = await import('node:worker_threads');
    const session = await open(slow);
    void addon.ortRun(matrix(session)).catch(() => {});
    parentPort.postMessage('flying');
    await new Promise((resolve) => setTimeout(resolve, 5000));
  },
};

const result = await scenarios[scenario]();
if (isMainThread) console.log(JSON.stringify(result));
