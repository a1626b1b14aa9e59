import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { figure, inTurns } from '../figures.mjs';
import { models } from '../machine.mjs';
import { runTrtexec } from '../trtexec.mjs';

const COLD_ROUNDS = 2;
const WARM_ROUNDS = 3;

/** Building the same typed FP16 model natively and with trtexec: cold in turns, then with the timing cache that each wrote. */
export async function build(machine, tell, problem) {
  if (machine.trtexec === null) problem('there is no trtexec to compare with');
  machine.readLibraries();
  const { profile } = models.resnet50;
  const model = machine.converted('resnet50');
  const at = (name) => join(machine.work, name);
  const caches = { ours: at('build.ours.cache'), peer: at('build.trtexec.cache') };
  for (const path of Object.values(caches)) rmSync(path, { force: true });
  const flags = ['min', 'opt', 'max'].map(
    (which) =>
      `--${which}Shapes=${Object.entries(profile)
        .map(([name, range]) => `${name}:${range[which].join('x')}`)
        .join(',')}`,
  );
  const ours = (state) => async () => {
    if (state === 'cold') rmSync(caches.ours, { force: true });
    const started = performance.now();
    await machine.build(model, at('build.ours.plan'), machine.recipe(profile), caches.ours);
    return (performance.now() - started) / 1000;
  };
  const peer = (state) => async () => {
    if (state === 'cold') rmSync(caches.peer, { force: true });
    const started = performance.now();
    await runTrtexec(machine, [
      `--onnx=${model}`,
      ...(machine.major === 10 ? ['--stronglyTyped'] : machine.major < 10 ? ['--fp16'] : []),
      ...flags,
      `--timingCacheFile=${caches.peer}`,
      `--saveEngine=${at('build.trtexec.plan')}`,
      machine.major < 10 ? '--buildOnly' : '--skipInference',
    ]);
    return (performance.now() - started) / 1000;
  };
  const sides = (state) => ({
    ours: ours(state),
    peer: machine.trtexec === null ? null : peer(state),
  });
  const what = 'ResNet-50 typed FP16, 1/32/64';
  for (const [state, rounds, how] of [
    ['cold', COLD_ROUNDS, 'cold build'],
    ['warm', WARM_ROUNDS, 'build with the timing cache'],
  ]) {
    const { ours: mine, peer: theirs } = await inTurns(rounds, sides(state), problem);
    tell(figure(`${what}: ${how}, whole process, trtexec`, 's', mine, theirs, { atMost: 1 }));
  }
}
