import { statIfThere } from '../../../base/files/files.js';
import { readPlanHeader } from '../../../engines/plan/header.js';
import { isCalled, nothingCalled } from '../../../engines/store/engine-query.js';
import type { LocalStore } from '../../../engines/store/local.js';
import type { StoredEngine } from '../../../engines/store/store.js';
import { verifyTrusted } from '../../../engines/store/trust.js';
import { TrtforgeError } from '../../../errors.js';
import { engineFamily } from './exporter.js';
import { refused } from './served-model.js';

/**
 * Engines by file, by a part of their name in the store, or by the start of their identity; each checked. One of the store brings those that it has of the
 * same model and recipe for other GPUs. Throws TF_USAGE, TF_SERVING_REFUSED, TF_PASSPORT_MISSING, TF_SIGNATURE_INVALID, TF_ENGINE_*.
 */
export async function chooseEngines(
  names: readonly string[],
  store: LocalStore,
): Promise<readonly StoredEngine[]> {
  const chosen = await Promise.all(
    names.map((name) =>
      statIfThere(name)?.isFile() === true ? engineOfFile(name, store) : enginesOfStore(name, store),
    ),
  );
  const byPath = new Map(chosen.flat().map((engine) => [engine.planPath, engine]));
  return [...byPath.values()];
}

async function engineOfFile(planPath: string, { trust }: LocalStore): Promise<readonly StoredEngine[]> {
  try {
    const { passport, signature } = await verifyTrusted(trust, planPath);
    return [{ identity: passport.identity.digest, planPath, passport, signature, readablePath: null }];
  } catch (error) {
    if (!(error instanceof TrtforgeError) || error.code !== 'TF_PASSPORT_MISSING') throw error;
    // A plan that Triton cannot run needs no passport.
    if (readPlanHeader(planPath).product === 'tensorrt-rtx')
      throw refused(
        `${planPath} is an engine of TensorRT-RTX, which Triton's TensorRT back end cannot run.`,
        'Build it with --target tensorrt on a machine with the GPU.',
      );
    throw new TrtforgeError(
      'TF_PASSPORT_MISSING',
      `${planPath} has no passport: its GPU, profiles and the shapes of its inputs and outputs are not known.`,
      {
        remedy:
          'Build it with trtforge build, which writes a passport; import an engine with its passport by trtforge cache import.',
      },
    );
  }
}

async function enginesOfStore(name: string, store: LocalStore): Promise<readonly StoredEngine[]> {
  const named = (await store.list()).filter((engine) => isCalled(name, engine.identity, engine.name ?? ''));
  if (named.length === 0) throw nothingCalled(store.place, name);
  const isDigest = named.length === 1 && named[0]!.identity.startsWith(name);
  const identities = new Set(named.map(({ identity }) => identity));
  for (const { identity, model } of named) {
    const passport = await store.passport(identity);
    if (passport === undefined || model === null) continue;
    for (const other of isDigest ? [] : await store.ofModel(model)) {
      const otherPassport = await store.passport(other.identity);
      if (otherPassport === undefined) continue;
      if (engineFamily({ passport: otherPassport }) === engineFamily({ passport }))
        identities.add(other.identity);
    }
  }
  return Promise.all([...identities].map((identity) => engineOf(identity, store)));
}

async function engineOf(identity: string, store: LocalStore): Promise<StoredEngine> {
  const answer = await store.get(identity);
  if (answer.found) return answer.engine;
  throw new TrtforgeError(answer.code ?? 'TF_PASSPORT_MISSING', answer.reason);
}
