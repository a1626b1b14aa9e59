import { loadedFacts } from '../../../test/gpu/harness.mjs';
import { figure, inTurns, median } from '../figures.mjs';

const LOADS = 5;

/** Loading a plan that the page cache has, beside the library's own deserialize through NVIDIA's Python API: with reading the file, and without. */
export async function load(machine, tell, problem) {
  const { addon, python, toolchain } = machine;
  if (python === null) problem('there is no Python with TensorRT to compare with');
  const plan = await machine.typedPlan('encoder');
  const ours = async () => {
    const times = [];
    for (let at = 0; at < LOADS; at++) {
      const { readMs, deserializeMs } = await loadedFacts(addon, toolchain, plan);
      times.push(readMs + deserializeMs);
    }
    return median(times);
  };
  const theirs = (timeOf) =>
    python === null ? null : async () => timeOf(await python.ask({ plan, loads: LOADS }));
  const found = await inTurns(
    machine.rounds,
    {
      ours,
      whole: theirs(({ readMs, deserializeMs }) => readMs + deserializeMs),
      bare: theirs(({ deserializeMs }) => deserializeMs),
    },
    problem,
  );
  const what = 'Transformer encoder FP16: reading and deserializing the plan';
  tell(figure(`${what}, Python likewise`, 'ms', found.ours, found.whole, { atMost: 1.02 }));
  tell(figure(`${what}, Python's deserialize of bytes in memory`, 'ms', found.ours, found.bare));
}
