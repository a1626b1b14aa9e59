import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { openSession, type Tensor } from 'trtforge';
import { type Contract, guard, readContract } from 'trtforge/streaming';
import { runExample, UsageError } from '../usage.js';

const USAGE = `node build/examples/prometheus/main.js MODEL CONTRACT [--port <n>] [--chunks <n>]

Streams noise through a guarded model (chunk by chunk, its state fed back) and serves the guard's counters at /metrics in Prometheus' text format.
  --port <n>     default 9464; 0 selects a free one
  --chunks <n>   default 1000; the server then runs until it is interrupted
`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { port: { type: 'string', default: '9464' }, chunks: { type: 'string', default: '1000' } },
  });
  const [model, contractPath] = positionals;
  if (model === undefined || contractPath === undefined)
    throw new UsageError('Name a model and its contract.');
  const contract = readContract(contractPath);
  const session = guard(await openSession(model), contract, {
    on: 'warn',
    warn: (message) => process.stderr.write(`${message}\n`),
  });
  const server = createServer((request, response) => {
    const isMetrics = request.url === '/metrics';
    response.writeHead(isMetrics ? 200 : 404, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
    response.end(isMetrics ? session.counters.prometheus({ model: contract.name }) : 'Request /metrics.\n');
  });
  await new Promise<void>((listening) => {
    server.listen(Number(values.port), listening);
  });
  process.stdout.write(`http://localhost:${(server.address() as AddressInfo).port}/metrics\n`);
  process.once('SIGINT', () => server.close());
  process.once('SIGTERM', () => server.close());

  let state = emptyState(contract);
  for (let chunk = 0; chunk < Number(values.chunks) && server.listening; chunk++) {
    const outputs = await session.run(new Map([...noise(contract, chunk), ...state]));
    state = new Map(contract.state.map((pair) => [pair.input, outputs.get(pair.output)!]));
  }
  await session.close();
  process.stdout.write(`${session.counters.steps} steps, ${session.counters.violations()} violations\n`);
}

/** Every state tensor as it is before the first chunk: zeros, for a batch of one. */
function emptyState({ state, inputs }: Contract): ReadonlyMap<string, Tensor> {
  return new Map(
    state.map(({ input }): [string, Tensor] => {
      const binding = inputs.find(({ name }) => name === input)!;
      const dims = (binding.shape ?? []).map((size) => (typeof size === 'number' ? size : 1));
      const width = binding.dtype === 'int64' ? 8 : 4;
      const bytes = new Uint8Array(width * dims.reduce((product, size) => product * size, 1));
      return [input, { dtype: binding.dtype ?? 'float32', shape: dims, bytes }];
    }),
  );
}

/** A chunk of noise of the size that the schedule has for it, and its length. */
function noise({ schedule, inputs, lengths }: Contract, chunk: number): readonly [string, Tensor][] {
  if (schedule === null) throw new Error('The contract has no schedule of chunks.');
  const frames = chunk === 0 ? schedule.first : schedule.rest;
  const shape = (inputs.find(({ name }) => name === schedule.tensor)?.shape ?? []).map((size, axis) =>
    axis === schedule.axis ? frames : typeof size === 'number' ? size : 1,
  );
  const values = Float32Array.from(
    { length: shape.reduce((product, size) => product * size, 1) },
    () => 2 * Math.random() - 1,
  );
  const signal: Tensor = { dtype: 'float32', shape, bytes: new Uint8Array(values.buffer) };
  if (lengths.signal === null) return [[schedule.tensor, signal]];
  const bytes = new Uint8Array(BigInt64Array.of(BigInt(frames)).buffer);
  return [
    [schedule.tensor, signal],
    [lengths.signal, { dtype: 'int64', shape: [1], bytes }],
  ];
}

await runExample(main, USAGE);
