import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runExample, UsageError } from '../usage.js';
import { cutOutput, HEADS } from './heads.js';
import { Instances, imageName } from './instances.js';
import { drawScene, type Scene, SIDE, SPLITS } from './scene.js';
import { CLASS_NAMES } from './shapes.js';

const USAGE = `node build/examples/detector/main.js scenes -o FOLDER [options]
node build/examples/detector/main.js heads MODEL -o FOLDER

scenes draws scenes of ${CLASS_NAMES.length} classes: images/*.png, instances.json and labels.txt. The same options result in the same pixels on every machine.
heads writes each output of detector.onnx as a separate model: ${HEADS.map((head) => `${head}.onnx`).join(', ')}.

  --split <name>      ${Object.keys(SPLITS).join(', ')} (default test)
  --count <integer>   number of scenes (default 2000)
  --first <integer>   index of the first (default 0)
  -o, --output        the folder
  --raw               instead of files, to standard output, for each scene: the number of objects, six numbers for each
                      (left, top, width, height, class, crowd; all int32, little endian) and ${SIDE} x ${SIDE} x 3 bytes of pixels
`;

type Split = keyof typeof SPLITS;

function wholeNumber(text: string, option: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0 || value >= 2 ** 31)
    throw new UsageError(`${option} ${text} is not a whole number from 0 on.`);
  return value;
}

function folderOf(output: string | undefined): string {
  if (output === undefined) throw new UsageError('Name a folder: -o FOLDER.');
  return output;
}

function* scenes(split: Split, first: number, count: number): Generator<readonly [number, Scene]> {
  for (let index = first; index < first + count; index++) yield [index, drawScene(split, index)];
}

async function writeRaw(drawn: Iterable<readonly [number, Scene]>): Promise<void> {
  for (const [, { objects, pixels }] of drawn) {
    const numbers = objects.flatMap(({ box, category, crowd }) => [...box, category, crowd ? 1 : 0]);
    const head = Buffer.alloc(4 * (numbers.length + 1));
    for (const [i, value] of [objects.length, ...numbers].entries()) head.writeInt32LE(value, 4 * i);
    process.stdout.write(head);
    if (!process.stdout.write(pixels)) await once(process.stdout, 'drain');
  }
}

async function writeFiles(
  drawn: Iterable<readonly [number, Scene]>,
  folder: string,
  description: string,
): Promise<void> {
  const { default: sharp } = await import('sharp');
  const images = join(folder, 'images');
  mkdirSync(images, { recursive: true });
  const instances = new Instances();
  const digest = createHash('sha256');
  for (const [index, scene] of drawn) {
    instances.add(index, scene);
    digest.update(scene.pixels);
    await sharp(scene.pixels, { raw: { width: SIDE, height: SIDE, channels: 3 } })
      .png({ compressionLevel: 3 })
      .toFile(join(images, imageName(index)));
  }
  const document = instances.document(description);
  writeFileSync(join(folder, 'instances.json'), JSON.stringify(document));
  writeFileSync(join(folder, 'labels.txt'), `${CLASS_NAMES.join('\n')}\n`);
  process.stdout.write(
    `${document.images.length} scenes, ${document.annotations.length} annotations\nsha256 of the pixels ${digest.digest('hex')}\n`,
  );
}

async function writeHeads(model: string | undefined, folder: string): Promise<void> {
  if (model === undefined) throw new UsageError('Name the model.');
  mkdirSync(folder, { recursive: true });
  for (const head of HEADS) await cutOutput(model, head, join(folder, `${head}.onnx`));
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      split: { type: 'string', default: 'test' },
      count: { type: 'string', default: '2000' },
      first: { type: 'string', default: '0' },
      output: { type: 'string', short: 'o' },
      raw: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const [command, model] = positionals;
  if (command === 'heads') return writeHeads(model, folderOf(values.output));
  if (command !== 'scenes' || model !== undefined)
    throw new UsageError('Name what to write: scenes or heads.');
  if (!Object.hasOwn(SPLITS, values.split))
    throw new UsageError(`"${values.split}" is not a split. Name ${Object.keys(SPLITS).join(', ')}.`);
  const [first, count] = [wholeNumber(values.first, '--first'), wholeNumber(values.count, '--count')];
  const drawn = scenes(values.split as Split, first, count);
  if (values.raw) await writeRaw(drawn);
  else await writeFiles(drawn, folderOf(values.output), `${values.split} ${first} to ${first + count - 1}`);
}

await runExample(main, USAGE);
