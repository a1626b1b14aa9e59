/**
 * Child of the `reference` case: node read-reference.js MODULE REFERENCE RUNS prints, for each run, the seconds that reading every tensor of every chunk
 * took. One page of each tensor is looked at, as a comparison would.
 */
import { pathToFileURL } from 'node:url';

interface ReferenceModule {
  openReference(path: string): {
    chunks(): AsyncIterable<Record<'inputs' | 'outputs', ReadonlyMap<string, { bytes: Uint8Array }>>>;
    close(): void;
  };
}

const [module = '', path = '', runs = '1'] = process.argv.slice(2);
const { openReference } = (await import(pathToFileURL(module).href)) as ReferenceModule;
const seconds: number[] = [];
let looked = 0;
for (let run = -1; run < Number(runs); run++) {
  const reference = openReference(path);
  const started = performance.now();
  for await (const { inputs, outputs } of reference.chunks())
    for (const tensors of [inputs, outputs])
      for (const { bytes } of tensors.values()) looked += bytes[bytes.length - 1] ?? 0;
  if (run >= 0) seconds.push((performance.now() - started) / 1000);
  reference.close();
}
if (looked < 0) throw new Error('bytes are not negative');
console.log(JSON.stringify(seconds));
