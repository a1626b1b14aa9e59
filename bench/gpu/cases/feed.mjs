import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { preparedImages, preprocessingOf } from '../../../dist/engines/run/image-inputs.js';
import { openSession } from '../../../dist/engines/runtime/open-session.js';
import { figure, inTurns } from '../figures.mjs';
import { command } from '../machine.mjs';

const own = fileURLToPath(new URL('../../../dist/trtforge.cjs', import.meta.url));
const SCENES = 2000;
/** Inputs that are in memory for inference alone. */
const KEPT = 64;
/** As every round of the evaluator: buffers and the CUDA graph are made by the first runs. */
const WARM_UP = 10;
const IMAGE = [1, 3, 256, 256];

/**
 * Whether the GPU is fed: images a second of `eval detector` beside the slower of its two parts, each alone: preparing images, and running an engine on inputs
 * that are in memory. The detector of examples/ as FP16, over 2,000 scenes (SCENES names a folder of them).
 */
export async function feed(machine, tell, problem) {
  const scenes = scenesOf(machine);
  const images = join(scenes, 'images');
  const paths = readdirSync(images).map((file) => join(images, file));
  const plan = await machine.plan(
    'detector',
    () => detectorOf(machine),
    machine.recipe({ images: { min: IMAGE, opt: IMAGE, max: IMAGE, values: false } }),
  );
  const session = await openSession(plan, {}, { environment: machine.environment });
  try {
    const { preparing, inference, evaluator } = await ratesOf(
      machine,
      session,
      paths,
      () => evaluated(machine, plan, scenes).run.imagesPerSecond,
      problem,
    );
    const cores = `${availableParallelism()} cores`;
    tell(
      figure(`detector FP16, ${paths.length} scenes, ${cores}: preparing alone`, 'images/s', preparing, null),
    );
    tell(figure('… inference alone, inputs in memory', 'images/s', inference, null));
    const slower = preparing === null || inference === null ? null : Math.min(preparing, inference);
    tell(
      figure('… eval detector end to end, beside the slower of the two', 'images/s', evaluator, slower, {
        atLeast: 0.9,
      }),
    );
  } finally {
    await session.close();
  }
}

/** Images a second of the two parts alone and of the evaluator, in turns. */
async function ratesOf(machine, session, paths, evaluator, problem) {
  const preprocessing = preprocessingOf(session.inputs, 'yolo', IMAGE[3]);
  const kept = [];
  for await (const { inputs } of preparedImages(session.inputs, paths.slice(0, KEPT), preprocessing))
    kept.push(inputs);
  const run = (index) => session.runRepeatedly(kept[index % kept.length], { iterations: 1 });

  return inTurns(
    machine.rounds,
    {
      preparing: async () => {
        let started;
        // As the evaluator counts: from the first image on.
        for await (const _ of preparedImages(session.inputs, paths, preprocessing))
          started ??= performance.now();
        return perSecond(paths.length, started);
      },
      inference: async () => {
        for (let index = 0; index < WARM_UP; index++) await run(index);
        const started = performance.now();
        for (let index = 0; index < paths.length; index++) await run(index);
        return perSecond(paths.length, started);
      },
      evaluator: async () => evaluator(),
    },
    problem,
  );
}

const perSecond = (count, started) => (1000 * count) / (performance.now() - started);

function scenesOf(machine) {
  const given = process.env.SCENES;
  if (given !== undefined && existsSync(given)) return given;
  const folder = join(machine.work, 'scenes');
  const done = join(folder, 'instances.json');
  const made = ['build/examples/detector/main.js', 'scenes', '--count', String(SCENES), '-o', folder];
  if (!existsSync(done)) command(made, done);
  return folder;
}

/** The end-to-end head, typed FP16. */
function detectorOf(machine) {
  const heads = join(machine.work, 'heads');
  const head = join(heads, 'end_to_end.onnx');
  const typed = join(heads, 'end_to_end.fp16.onnx');
  const model = join(machine.root, 'examples/detector/detector.onnx');
  if (!existsSync(head)) command(['build/examples/detector/main.js', 'heads', model, '-o', heads], head);
  if (!existsSync(typed))
    command(['dist/main.js', 'convert', head, '--precision', 'fp16', '-o', typed], typed);
  return typed;
}

/** The result of `eval detector` over a folder of scenes. */
export function evaluated({ environment }, plan, scenes) {
  const { stdout } = spawnSync(
    process.execPath,
    [
      ...[own, 'eval', 'detector', plan, '--json', '--quiet', '--labels', join(scenes, 'labels.txt')],
      ...['--instances', join(scenes, 'instances.json'), '--images', join(scenes, 'images')],
      ...['--warmup-runs', String(WARM_UP)],
    ],
    { env: environment, encoding: 'utf8', maxBuffer: 1 << 30 },
  );
  const answer = JSON.parse(stdout);
  if (!answer.ok) throw new Error(answer.error.message);
  return answer;
}
