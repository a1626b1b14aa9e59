import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { buildAddon } from '../../../scripts/build-native.mjs';
import { buildPlan } from '../../../src/engines/builder/build-supervised.js';
import { readPlanHeader } from '../../../src/engines/plan/header.js';
import { readPlanProgram } from '../../../src/engines/plan/program.js';
import { ignoreEvents } from '../../../src/events.js';
import { scratchFolder } from '../../formats/onnx/support/models.js';
import { rtxToolchain } from '../../native/rtx-toolchain.js';
import { describeWith } from '../../support/needs.js';
import { resolvedBuild, writeSampleModel } from '../../support/sample-engine.js';

const folder = scratchFolder();

describeWith('toolchain', 'the program in a plan of tensorrt-rtx', (libraries) => {
  beforeAll(async () => {
    await buildAddon({ say: () => {} });
  });

  async function programOf(modelPath: string, computeCapabilities: readonly number[]) {
    const planPath = `${modelPath}.${computeCapabilities.join('-')}.plan`;
    const build = resolvedBuild(modelPath, { toolchain: rtxToolchain(libraries), computeCapabilities });
    await buildPlan(build, { modelPath, planPath }, { emit: ignoreEvents });
    return readPlanProgram(readPlanHeader(planPath));
  }

  it('has the matrix product in its type, and one digest whatever the names', async () => {
    const model = await writeSampleModel(join(folder, 'a.onnx'), { batch: 8 });
    const program = await programOf(model, [86, 89]);
    expect(program?.graphs.map(({ architectures }) => architectures)).toEqual([['sm_86', 'sm_89']]);
    const product = program?.graphs[0]?.kernels.find(({ nodes }) => nodes.includes('product'));
    const operation = product?.parts.find(({ kind }) => kind === 'fully_connected') ?? product;
    expect(operation?.kind).toBe('fully_connected');
    expect(operation?.inputs.slice(0, 2).map(({ dtype }) => dtype)).toEqual(['float32', 'float32']);
    const again = await writeSampleModel(join(folder, 'b.onnx'), { batch: 8, scale: 0.02 });
    expect((await programOf(again, [86, 89]))?.digest).toBe(program?.digest);
    expect((await programOf(model, [89]))?.digest).not.toBe(program?.digest);
  });
});
