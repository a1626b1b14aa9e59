// The exports of the compiled module, without the wrapper that types them: whatever is passed in, an error of ours comes back or a result, never a crash.
import { copyFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { openRequest, outcome, shape, workbenchArgs } from './workbench.mjs';

const [, addonPath, , folder] = workbenchArgs;

export const foreign = {
  async foreign() {
    const raw = createRequire(import.meta.url)(addonPath);
    const { handle: engine } = await raw.openEngine(openRequest('affine'), () => {}).done;
    const context = await raw.createContext(engine, { profile: 0, profiling: false }).done;
    const bindings = ['x', 'y'].map((name) => ({ name, memory: null, offset: 0 }));
    const shapes = [shape('x', [2, 64])];
    const prepared = { shapes, bindings, graph: true, smallTensors: 'copied' };
    const { handle: call, slots } = await raw.prepareCall(context, prepared).done;
    const pinned = (name) =>
      new Float32Array(
        raw.callBuffer(
          call,
          slots.findIndex((slot) => slot.name === name),
        ),
      );
    const memory = raw.engineAllocate(engine, 64);
    // Another copy of the addon, as two versions of a package bring it: what its handles hold may be laid out otherwise.
    const copy = `${folder}/other-${process.pid}.node`;
    copyFileSync(addonPath, copy);
    const other = createRequire(import.meta.url)(copy);
    rmSync(copy);
    const foreign = await outcome(() => other.engineAllocate(engine, 64));
    // A text is a path to what writes an engine.
    process.chdir(folder);
    const nothing = [undefined, null, true, 17, -1, Number.NaN, 2 ** 60, 10n, 'x', Symbol('x')];
    const objects = [
      [],
      {},
      () => {},
      new Uint8Array(3),
      new ArrayBuffer(8),
      [undefined],
      [[]],
      { length: 2 ** 32 - 1 },
    ];
    const angry = new Proxy(
      {},
      {
        get: () => {
          throw new Error('not to be read');
        },
      },
    );
    const given = [
      ...nothing,
      ...objects,
      angry,
      engine,
      context,
      call,
      memory,
      prepared,
      shapes,
      [{ name: 'x' }],
      [{ name: 'x', data: 7 }],
    ];
    const strange = [];
    let refused = 0;
    const attempt = async (name, words) => {
      try {
        const result = raw[name](...words);
        await result?.done;
      } catch (error) {
        // JavaScript itself reads nothing out of undefined and null.
        const ofJavaScript = error instanceof TypeError || error?.message === 'not to be read';
        if (ofJavaScript || /^TF_/.test(error?.code ?? '')) refused++;
        else strange.push([name, words.map((word) => typeof word), String(error)]);
      }
    };
    for (const name of Object.keys(raw).filter((name) => !name.endsWith('Close') && name !== 'gpus')) {
      await attempt(name, []);
      for (const first of given) {
        await attempt(name, [first]);
        for (const second of given) await attempt(name, [first, second]);
      }
      for (const handle of [engine, context, call, memory])
        for (const second of given) for (const third of given) await attempt(name, [handle, second, third]);
    }
    for (const [name, own] of Object.entries({
      engineClose: engine,
      contextClose: context,
      callClose: call,
      memoryClose: memory,
    }))
      for (const first of given.filter((value) => value !== own)) await attempt(name, [first]);
    // What was passed through the right exports by the right handle still works.
    pinned('x').fill(4);
    raw.callLaunch(call);
    const y = pinned('y')[127];
    await raw.engineClose(engine).done;
    return { strange, refused: refused > 10_000, y, foreign: foreign.code };
  },
};
