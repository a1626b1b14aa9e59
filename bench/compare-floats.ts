/**
 * Child of the `compare` case: node compare-floats.js MODULE CANDIDATE REFERENCE HEADER TENSORS RUNS QUANTILES prints, for each run, the seconds of
 * processor time that comparing all tensors took: it computes on one core, and other programs on the machine do not count. Only the comparison is timed, after a warm-up; the files hold the tensors one after another as float32, behind HEADER bytes.
 */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

interface ComparisonModule {
  compareFloats(
    candidate: Float32Array,
    reference: Float32Array,
    tolerance: { absolute: number; relative: number },
    quantiles: string,
  ): unknown;
}

const [module = '', candidatePath = '', referencePath = '', header = '0', ...more] = process.argv.slice(2);
const [tensors = '1', runs = '1', quantiles = 'none'] = more;
const { compareFloats } = (await import(pathToFileURL(module).href)) as ComparisonModule;
const tolerance = { absolute: 1e-5, relative: 1e-5 };

const split = (path: string): Float32Array[] => {
  const values = new Float32Array(new Uint8Array(readFileSync(path).subarray(Number(header))).buffer);
  const size = values.length / Number(tensors);
  return Array.from({ length: Number(tensors) }, (_, index) =>
    values.slice(index * size, (index + 1) * size),
  );
};
const candidates = split(candidatePath);
const references = split(referencePath);
const compareAll = () =>
  candidates.map((candidate, i) => compareFloats(candidate, references[i]!, tolerance, quantiles));

// Until the compiler's own threads are done: their processor time would count as comparing.
for (let warmUp = 0; warmUp < 4; warmUp++) compareAll();
const seconds = Array.from({ length: Number(runs) }, () => {
  const started = process.cpuUsage();
  compareAll();
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1e6;
});
console.log(JSON.stringify(seconds));
