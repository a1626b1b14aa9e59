import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Session, Tensor } from 'trtforge';
import { streamingContract } from '../../examples/models/streaming-encoder/contract.js';
import { streamingShapes } from '../../examples/models/streaming-encoder/shapes.js';
import type { BenchCase, BenchContext } from '../context.js';
import { median } from '../measure.js';

const CALLS = 50_000;

/** What a guard adds to a step of the full-size streaming encoder: the same session with and without it, which answers at once. */
export const guard: BenchCase = {
  name: 'guard',
  run: async (context) => {
    const { bare, guarded } = await sessions(context);
    const costs = { bare: [] as number[], guarded: [] as number[] };
    for (let run = -1; run < context.runs; run++) {
      const [without, withGuard] = [await cpuMicroseconds(bare), await cpuMicroseconds(guarded)];
      if (run < 0) continue;
      costs.bare.push(without);
      costs.guarded.push(withGuard);
    }
    return {
      case: 'guard',
      title: 'A guard on the full-size streaming encoder',
      commands: ['guard(session, contract).run(inputs), less session.run(inputs)'],
      measurements: [
        {
          what: 'processor time it adds to a call',
          unit: 'µs',
          ours: median(costs.guarded) - median(costs.bare),
          bar: { limit: 5, better: 'lower' },
        },
      ],
      skipped: [],
    };
  },
};

const shape = streamingShapes.full;
const state = [1, shape.layers, shape.cacheSize, shape.width];
const time = [1, shape.layers, shape.width, 4];

const floats = (dims: readonly number[]): Tensor => ({
  dtype: 'float32',
  shape: dims,
  bytes: new Uint8Array(4 * dims.reduce((product, size) => product * size, 1)),
});
const length = (value: number): Tensor => ({
  dtype: 'int64',
  shape: [1],
  bytes: new Uint8Array(BigInt64Array.of(BigInt(value)).buffer),
});

const inputs = () =>
  new Map([
    ['audio_signal', floats([1, shape.mels, 57])],
    ['length', length(57)],
    ['cache_last_channel', floats(state)],
    ['cache_last_time', floats(time)],
    ['cache_last_channel_len', length(4)],
  ]);

const outputs = () =>
  new Map([
    ['encoder_output', floats([1, shape.width, 3])],
    ['encoded_lengths', length(3)],
    ['cache_last_channel_out', floats(state)],
    ['cache_last_time_out', floats(time)],
    ['cache_last_channel_len_out', length(7)],
  ]);

const given = inputs();

async function sessions({
  root,
}: BenchContext): Promise<{ readonly bare: Session; readonly guarded: Session }> {
  const built = (path: string) => pathToFileURL(join(root, 'dist', path)).href;
  const { guard: watch } = await import(built('products/streaming/guard/guarded-session.js'));
  const { parseContract } = await import(built('formats/contract/file.js'));
  const contract = parseContract('full', JSON.stringify(streamingContract('full', shape)));
  const answer = outputs();
  const close = async () => {};
  const bare: Session = {
    backend: 'answers at once',
    inputs: [],
    outputs: [],
    run: async () => answer,
    close,
    [Symbol.asyncDispose]: close,
  };
  return { bare, guarded: watch(bare, contract) };
}

/** Of one call. Processor time, since other work on the machine does not count in it. */
async function cpuMicroseconds(session: Session): Promise<number> {
  const before = process.cpuUsage();
  for (let call = 0; call < CALLS; call++) await session.run(given);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}
