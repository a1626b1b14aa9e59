/**
 * Child of the `compare` case: node compare-floats.js DIST CANDIDATE REFERENCE HEADER TENSORS RUNS QUANTILES PASS prints, for each run, the seconds of
 * processor time that comparing all tensors took: it computes on one core, and other programs on the machine do not count. Only the comparison is timed,
 * after a warm-up. The files hold the tensors one after another as float32, behind HEADER bytes; DIST is the folder of the compiled
 * sources, PASS is `addon` or `typescript`.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

interface FloatReaderModule {
  floatsOf(values: Float32Array): object;
}
interface PairSumsModule {
  readonly measureChunk: object;
}
interface ComparisonModule {
  fastestMeasure(): object;
  comparePairs(
    pairs: { candidate: object; reference: object },
    tolerance: { absolute: number; relative: number },
    quantiles: string,
    histogram: undefined,
    measure: object,
  ): unknown;
}

const [dist = '', candidatePath = '', referencePath = '', header = '0', ...more] = process.argv.slice(2);
const [tensors = '1', runs = '1', quantiles = 'none', pass = 'addon'] = more;
const load = async <T>(path: string): Promise<T> => (await import(pathToFileURL(join(dist, path)).href)) as T;
const { floatsOf } = await load<FloatReaderModule>('formats/tensor/tensor-reader.js');
const { measureChunk } = await load<PairSumsModule>('formats/tensor/compare/pair-sums.js');
const { comparePairs, fastestMeasure } = await load<ComparisonModule>('formats/tensor/compare/comparison.js');
const tolerance = { absolute: 1e-5, relative: 1e-5 };
const measure = pass === 'addon' ? fastestMeasure() : measureChunk;
if (pass === 'addon' && measure === measureChunk) throw new Error('The addon is not compiled.');

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
  candidates.map((candidate, i) => {
    const pairs = { candidate: floatsOf(candidate), reference: floatsOf(references[i]!) };
    return comparePairs(pairs, tolerance, quantiles, undefined, measure);
  });

// Until the compiler's own threads are done: their processor time would count as comparing.
for (let warmUp = 0; warmUp < 4; warmUp++) compareAll();
const seconds = Array.from({ length: Number(runs) }, () => {
  const started = process.cpuUsage();
  compareAll();
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1e6;
});
console.log(JSON.stringify(seconds));
