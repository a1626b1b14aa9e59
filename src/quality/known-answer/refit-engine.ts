import { protectingInputs } from '../../base/files/user-files.js';
import * as is from '../../base/options/kinds.js';
import { needed, type OptionsOf } from '../../base/options/option.js';
import type { ObtainedEngine } from '../../engines/builder/build-result.js';
import { obtainEngine } from '../../engines/builder/obtain-engine.js';
import { type BuildContext, buildOptions } from '../../engines/builder/options.js';
import { refittingBuilder, resolveRefit } from '../../engines/builder/refit-plan.js';
import { skeletonOf } from '../../engines/plan/refit.js';
import { readPlanOnDisk, toolchainForPlan } from '../../engines/runtime/tensorrt/load-engine.js';
import { loadOptions } from '../../engines/runtime/tensorrt/options.js';
import { openStores } from '../../engines/store/open-stores.js';
import { signatureOptions } from '../../engines/store/trust.js';
import { answerMaker } from './at-build.js';
/** The engine to refit, the model whose weights it is to have, and where it is written. */
export const refitOptions = {
  /** Path of an engine that was built with `refit`, with its passport beside it. */
  engine: needed(is.text),
  /** Path of an ONNX model with the engine's graph. */
  model: needed(is.text),
  /** Path of the refitted engine. */
  output: needed(is.text, {
    flags: '-o, --output <file>',
    describe: 'where the refitted engine goes, its passport beside it',
    writes: ['a TensorRT plan'],
    required: '-o new.engine',
  }),
  device: { ...buildOptions.device, describe: 'which visible GPU refits the engine (default: 0)' },
  plugins: loadOptions.plugins,
  toolchain: buildOptions.toolchain,
  allowHostCode: loadOptions.allowHostCode,
  identity: loadOptions.identity,
  ...signatureOptions,
};

/**
 * An engine with the weights of another model in place of a new build, on the GPU that runs it: its recipe and target are the engine's, its known answer is that of the
 * model. The engine stays as it is, and nothing is written where that fails.
 * Errors: those of `readPlanOnDisk` and `resolveBuild`; TF_ENGINE_NOT_REFITTABLE; TF_REFIT_MODEL_MISMATCH before any work on the GPU; TF_OPTION_UNSUPPORTED;
 * TF_REFIT_FAILED, also where the engine does not give its known answer.
 */
export async function refitEngine(
  {
    engine,
    identity,
    allowHostCode = false,
    requireSignature,
    trustKeys = [],
    signKey,
    ...requested
  }: OptionsOf<typeof refitOptions>,
  context: BuildContext = {},
): Promise<ObtainedEngine> {
  const { model, plugins = [] } = requested;
  const { environment = process.env } = context;
  return protectingInputs([model, engine, ...plugins, ...trustKeys, signKey], async () => {
    const keys = { requireSignature, trustKeys, signKey };
    const stores = await openStores({ store: false, remote: false, ...keys }, environment);
    // What is signed is made only of what was signed, and that nobody else can change meanwhile.
    const { required, signingKey } = stores.trust;
    const trust = { ...stores.trust, required: required || signingKey !== null };
    using plan = await readPlanOnDisk(engine, { requirePassport: true, identity, trust });
    const skeleton = skeletonOf(plan);
    const build = await resolveRefit(skeleton, requested, context);
    await toolchainForPlan(plan, { toolchain: build.toolchain, allowHostCode, environment });
    return await obtainEngine(build, stores, {
      ...context,
      build: refittingBuilder(skeleton, { planPath: plan.loadPath, load: { allowHostCode } }),
      phase: 'refit',
      areSizesKnown: true,
      answer: answerMaker(true, { allowHostCode }),
    });
  });
}
