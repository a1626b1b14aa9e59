// From a clone to a real engine: sets the clone up, generates a ResNet-50, forges it, and says where everything is.
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Phases, runProgram, runScript } from './phases.mjs';
import { root, setUp } from './setup.mjs';

const USAGE = `npm run demo [-- --size full|small|tiny] [--json]

Sets the clone up, generates a ResNet-50 with seeded weights and forges it into an FP16 engine.
  --size   full (25.5 M parameters, default), small or tiny
  --json   one JSON object with the paths and the time of each phase on stdout
`;

/** What is forged: every image size the generator's ResNet-50 has, and the batches the engine must take: smallest, usual, largest. */
const imageSizes = { full: 224, small: 64, tiny: 32 };
const batches = [1, 8, 32];

runScript(() => {
  const { values } = parseArgs({
    options: {
      size: { type: 'string', default: 'full' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const imageSize = imageSizes[values.size];
  if (values.help || imageSize === undefined) {
    process.stderr.write(USAGE);
    process.exitCode = values.help ? 0 : 2;
    return;
  }

  const phases = new Phases();
  setUp({ phases });
  const folder = join('build', 'demo');
  const model = join(folder, values.size === 'full' ? 'resnet50.onnx' : `resnet50-${values.size}.onnx`);
  phases.run('generate ResNet-50', () => {
    runProgram(
      process.execPath,
      ['build/examples/models/main.js', 'resnet50', '--size', values.size, '--seed', '1', '-o', model],
      { cwd: root },
    );
    return `${(statSync(join(root, model)).size / 1e6).toFixed(0)} MB`;
  });

  const range = batches.map((batch) => `${batch}x3x${imageSize}x${imageSize}`).join('/');
  const options = ['--precision', 'fp16', '--profile', `input:${range}`];
  const run = join(folder, 'run');
  phases.run('forge', () => {
    // As text: where it fails, its reason and remedy are a few lines.
    runProgram(process.execPath, ['dist/main.js', 'forge', model, ...options, '--run-root', run], {
      cwd: root,
      show: true,
    });
  });
  const result = JSON.parse(readFileSync(join(root, run, 'report.json'), 'utf8'));
  for (const { name, ms, detail } of result.phases) {
    if (ms !== null) phases.results.push({ phase: name, seconds: ms / 1000, detail, partOf: 'forge' });
  }

  const { engine, report, verdict } = result;
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ engine, report, verdict, phases: phases.results }, null, 2)}\n`);
    return;
  }
  process.stdout.write(`
${phases.table()}

${verdict.outcome}: ${verdict.headline}
engine  ${resolve(root, engine)}
report  ${resolve(root, report)}

The same for a model of your own, with its inputs’ names and shapes:
  node dist/main.js forge MODEL.onnx ${options.join(' ')}
`);
});
