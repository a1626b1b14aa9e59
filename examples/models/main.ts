import { statSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runExample, UsageError } from '../usage.js';
import { modelFamilies } from './catalogue.js';

const families = Object.entries(modelFamilies);

const USAGE = `node build/examples/models/main.js MODEL [options]

Generates an ONNX model with seeded weights: the same seed results in the same bytes.
${families.map(([name, { describe, sizes }]) => `  ${name.padEnd(20)} ${describe}; sizes ${sizes.join(', ')}`).join('\n')}

  --size <size>      default tiny
  --seed <integer>   default 1
  --external         weights in MODEL.onnx.data instead of inside (what is over 2 GB always goes there)
  -o, --output       the file, or the folder of a bundle (default out/MODEL.onnx, out/MODEL)
`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      size: { type: 'string', default: 'tiny' },
      seed: { type: 'string', default: '1' },
      external: { type: 'boolean', default: false },
      output: { type: 'string', short: 'o' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const [name = ''] = positionals;
  const family = modelFamilies[name];
  const seed = Number(values.seed);
  if (family === undefined || positionals.length > 1)
    throw new UsageError(`"${name}" is not a model. Name one of the list.`);
  if (!family.sizes.includes(values.size)) throw new UsageError(`${name} has no size "${values.size}".`);
  if (!Number.isSafeInteger(seed)) throw new UsageError(`The seed "${values.seed}" is not an integer.`);
  const path = values.output ?? `out/${name}${family.output === 'file' ? '.onnx' : ''}`;
  for (const file of await family.write(values.size, path, { seed, external: values.external })) {
    process.stdout.write(`${file}  ${(statSync(file).size / 1e6).toFixed(1)} MB\n`);
  }
}

await runExample(main, USAGE);
