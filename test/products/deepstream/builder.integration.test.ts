import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PlanBuilder } from '../../../src/engines/builder/options.js';
import { readPassport } from '../../../src/engines/identity/passport.js';
import { TrtforgeError } from '../../../src/errors.js';
import { workOf } from '../../../src/events.js';
import { factsOfModel } from '../../../src/formats/onnx/inspect.js';
import { EngineBuilder } from '../../../src/products/deepstream/builder.js';
import { streamsInputs } from '../../../src/products/deepstream/input.js';
import { StreamsPaths, streamsNames } from '../../../src/products/deepstream/names.js';
import { readTrtexecLog } from '../../../src/tensorrt/trtexec/log/log.js';
import { countingBuilder } from '../../fakes/builder.js';
import { writePictureModel } from '../../fakes/deepstream.js';
import { sampleToolchain } from '../../support/sample-engine.js';

const folder = mkdtempSync(join(tmpdir(), 'trtforge-streams-builder-'));
afterAll(() => rmSync(folder, { recursive: true }));
let model: string;
beforeAll(async () => {
  model = await writePictureModel(folder);
});

/** The native builder, over a library that speaks and writes a sample plan. */
function builderFor(name: string, precision: 'as-is' | 'fp16' = 'as-is', fails = false) {
  const counting = countingBuilder();
  const build: PlanBuilder = async (request, files, context) => {
    context.emit?.({ type: 'log', source: 'library', severity: 'warning', message: 'two\nlines' });
    if (fails) throw new TrtforgeError('TF_BUILD_FAILED', 'no kernel');
    return counting.build(request, files, context);
  };
  const paths = new StreamsPaths(streamsNames(model, { name }));
  const builder = new EngineBuilder({
    requested: {
      model,
      target: 'tensorrt-rtx:sm_89',
      toolchain: sampleToolchain,
      precision,
      store: join(folder, 'store'),
      remote: false,
    },
    build,
    inputs: streamsInputs(factsOfModel(model), {}),
    paths,
    firstMaxBatch: 8,
    work: workOf({ environment: { ...process.env, XDG_CACHE_HOME: join(folder, 'cache') } }),
  });
  const logs = () => readdirSync(paths.engines).filter((file) => file.endsWith('.log'));
  return { builder, paths, logs, count: counting.count };
}

describe('engines built by the library', () => {
  test('min = 1, opt = max, in the layout’s place, with a log that names its source', async () => {
    const { builder, paths, logs } = builderFor('first');
    const engine = await builder.build(8);
    expect(engine).toMatchObject({
      maxBatch: 8,
      path: paths.engine(8),
      bytes: 4096,
      library: 'tensorrt-rtx 1.7.1.116',
    });
    expect(readPassport(engine.path).identity.document.recipe.profiles).toEqual([
      { images: { min: [1, 3, 64, 64], opt: [8, 3, 64, 64], max: [8, 3, 64, 64], values: false } },
    ]);
    expect(logs()).toEqual([expect.stringMatching(/^net_dynamic_build_\d{8}_\d{6}\.log$/)]);
    const log = join(paths.engines, logs()[0] ?? '');
    expect(readFileSync(log, 'utf8')).toMatch(/^Built by trtforge \d.*, not by trtexec/);
    expect(readTrtexecLog(log)).toMatchObject({ warningCount: 2, engine: { builtSeconds: 0.001 } });
    expect(readdirSync(paths.engines).filter((file) => file.startsWith('.'))).toEqual([]);
  });

  test('is found again only as the very engine that would be built', async () => {
    const { builder, paths } = builderFor('again');
    expect(await builder.find(8)).toBeNull();
    const built = await builder.build(8);
    expect(await builder.find(8)).toEqual(built);
    expect(await builder.find(16)).toBeNull();
    expect(await builderFor('again', 'fp16').builder.find(8)).toBeNull();
    rmSync(`${paths.engine(8)}.passport.json`);
    expect(await builder.find(8)).toBeNull();
  });

  test('one that the store has is not built, and no log has a build that did not happen', async () => {
    await builderFor('one').builder.build(32);
    const { builder, logs, count } = builderFor('other');
    await builder.build(32);
    expect({ builds: count(), logs: logs() }).toEqual({ builds: 0, logs: [] });
  });

  test('later engines have their batch in the log’s name, and a failed build leaves its log', async () => {
    const { builder, paths, logs } = builderFor('failing', 'as-is', true);
    await expect(builder.build(64)).rejects.toMatchObject({ code: 'TF_BUILD_FAILED' });
    expect(logs()).toEqual([expect.stringMatching(/^net_dynamic_build_b64_\d{8}_\d{6}\.log$/)]);
    expect(readTrtexecLog(join(paths.engines, logs()[0] ?? '')).engine.builtSeconds).toBeNull();
    expect(await builder.find(64)).toBeNull();
  });
});
