import { chosenGpu, visibleGpus } from '../../addon/gpus.js';
import {
  behaviour,
  describeComputeCapability,
  holds,
  isAmperePlus,
  products,
  servedFrom,
  serves,
} from '../../behaviour/facts.js';
import { operatorElsewhere, opsetRanges } from '../../behaviour/operators.js';
import { compareVersions } from '../../behaviour/versions.js';
import { type ErrorCode, TrtforgeError } from '../../errors.js';
import type { EventListener } from '../../events.js';
import { formatNamed } from '../../formats/precision/formats/index.js';
import { isDeclared } from '../../tensorrt/toolchain/find.js';
import type { Toolchain } from '../../tensorrt/toolchain/toolchain.js';
import { buildArguments } from '../../tensorrt/trtexec/flags.js';
import type { ModelContent } from '../identity/model-digest.js';
import type { Recipe } from '../identity/recipe.js';
import { type Platform, platformFaults } from '../identity/target.js';
import { builderSettings } from './builder-settings.js';
import type { BuilderName, ResolvedBuild } from './options.js';
import { trtexecBuildRequest } from './trtexec-request.js';

/** A build and its target; facts that are not known yet are left out, and not judged. */
export interface Buildable {
  readonly toolchain: Pick<Toolchain, 'product' | 'version'>;
  readonly computeCapabilities: readonly number[];
  /** Of the engine. */
  readonly platform?: Platform;
  readonly recipe?: Recipe;
  readonly builder?: BuilderName;
  readonly model?: Pick<ModelContent, 'precisions' | 'operators' | 'opset'>;
}

/** A part that a version of TensorRT cannot build (`error`), or is not known to (`warning`). */
export interface BuildFault {
  readonly severity: 'error' | 'warning';
  readonly code: ErrorCode;
  readonly message: string;
  /** undefined: that of the code. */
  readonly remedy: string | undefined;
  /** The newest opset that the version knows, where the model's is newer. */
  readonly opset?: number;
}

/**
 * Whether a TensorRT (or TensorRT-RTX) can build a recipe and a model for GPUs, as far as the facts of `behaviour/` tell: GPUs, number types, options of the builder,
 * operators, opset. Every verb asks this; nothing is loaded or run for it. The gravest reason comes first; empty: nothing speaks against it.
 */
export function buildFaults(asked: Buildable): readonly BuildFault[] {
  const { recipe, model } = asked;
  return [
    ...gpuFaults(asked),
    ...onPlatform(asked),
    ...(recipe === undefined ? [] : recipeFaults(recipe, asked)),
    ...(model === undefined ? [] : modelFaults(model, asked)),
  ];
}

/** Reports what is not known, and throws the first thing that cannot be built: TF_TARGET_UNSUPPORTED, TF_OPTION_UNSUPPORTED, TF_LIBRARY_UNSUPPORTED. */
export function assertBuildable(asked: Buildable, emit: EventListener): void {
  for (const { severity, code, message, remedy } of buildFaults(asked)) {
    if (severity === 'error') throw new TrtforgeError(code, message, { remedy });
    emit({ type: 'log', source: 'trtforge', severity, message: [message, remedy ?? []].flat().join(' ') });
  }
}

/** Throws TF_GPU_UNAVAILABLE on a machine that cannot build a recipe for want of a GPU, before any work for it. An engine of it may be found there all the same. */
export function assertGpuToBuild({
  toolchain,
  identity: { recipe },
  device = 0,
}: Pick<ResolvedBuild, 'toolchain' | 'identity' | 'device'>): void {
  const fact = behaviour['flags-need-gpu'];
  const [flag] = recipe.flags.filter((each) => fact.value.some((flag) => flag === each));
  if (flag === undefined || isDeclared(toolchain) || !holds('flags-need-gpu', toolchain)) return;
  const need = `${nameOf(toolchain)} builds an engine with the flag ${flag} only with an NVIDIA GPU`;
  const option = flag === 'refit' ? '--refit' : `the flag ${flag}`;
  chosenGpu(visibleGpus(), device, need, `Leave ${option} out, or build where there is a GPU.`);
}

const nameOf = ({ product, version }: Buildable['toolchain']): string => `${products[product]} ${version}`;

const fault = (code: ErrorCode, message: string, remedy?: string): BuildFault => ({
  severity: 'error',
  code,
  message,
  remedy,
});
const doubt = (message: string): BuildFault => ({
  severity: 'warning',
  code: 'TF_TARGET_UNSUPPORTED',
  message,
  remedy: undefined,
});

function gpuFaults({ toolchain, computeCapabilities }: Buildable): readonly BuildFault[] {
  return computeCapabilities.flatMap((sm) => {
    const served = serves(toolchain, sm);
    if (served === 'yes') return [];
    const gpu = describeComputeCapability(sm);
    if (served === 'unknown')
      return doubt(`Nothing is known of ${gpu} with ${nameOf(toolchain)}: its support matrix decides.`);
    const others = [
      ...(toolchain.product === 'tensorrt' && serves({ ...toolchain, product: 'tensorrt-rtx' }, sm) === 'yes'
        ? [`--target tensorrt-rtx:sm_${sm}`]
        : []),
      ...(toolchain.product === 'tensorrt-rtx' && servedFrom(sm) !== null
        ? [`--target tensorrt:sm_${sm}`]
        : []),
    ];
    const versions = toolchain.product === 'tensorrt' ? servedFrom(sm) : null;
    const remedy = [
      ...(versions === null ? [] : [`It is served by TensorRT ${versions}.`]),
      ...others.map(
        (line) => `Pass ${line}${toolchain.product === 'tensorrt' ? '' : ' on a machine with that GPU'}.`,
      ),
      '`trtforge doctor` lists which TensorRT serves which GPU.',
    ].join(' ');
    return fault('TF_TARGET_UNSUPPORTED', `${nameOf(toolchain)} does not serve ${gpu}.`, remedy);
  });
}

function onPlatform({ toolchain, computeCapabilities, platform }: Buildable): readonly BuildFault[] {
  if (platform === undefined) return [];
  const faults = platformFaults(
    { product: toolchain.product, computeCapabilities: [...computeCapabilities] },
    platform,
  );
  return faults.map((each) => ({ ...each, code: 'TF_TARGET_UNSUPPORTED' }));
}

function recipeFaults(recipe: Recipe, asked: Buildable): readonly BuildFault[] {
  const { toolchain, computeCapabilities } = asked;
  const { precision, stronglyTyped, hardwareCompatibility } = recipe;
  const outside = computeCapabilities.find((sm) => !isAmperePlus(sm));
  // INT8 builds everywhere. TensorRT-RTX computes it in FP32 for 7.5, so nothing is converted for that.
  const isMade = stronglyTyped && (precision !== 'int8' || toolchain.product === 'tensorrt-rtx');
  return [
    ...typeFaults(precision, asked, isMade ? computeCapabilities : [], '--precision'),
    ...(hardwareCompatibility === 'ampere-plus' && outside !== undefined
      ? [
          fault(
            'TF_OPTION_UNSUPPORTED',
            `Engines for Ampere and newer (hardware-compatibility ampere-plus) are not built for ${describeComputeCapability(outside)}.`,
            'Leave hardware-compatibility out: the engine is then for that GPU alone.',
          ),
        ]
      : []),
    ...optionFaults(recipe, asked),
  ];
}

/** A type that the version does not parse, or that one of the GPUs lacks. */
function typeFaults(
  id: string,
  { toolchain }: Buildable,
  computeCapabilities: readonly number[],
  instead: '--precision' | 'model',
): readonly BuildFault[] {
  const format = formatNamed(id);
  if (format === undefined) return [];
  const holder = instead === 'model' ? ', and the model holds it' : '';
  const since = Object.entries(behaviour['number-types'].value).find(([type]) => type === id)?.[1];
  if (
    toolchain.product === 'tensorrt' &&
    since !== undefined &&
    compareVersions(toolchain.version, since) < 0
  )
    return [
      fault(
        'TF_OPTION_UNSUPPORTED',
        `${nameOf(toolchain)} has no ${format.label}${holder}; TensorRT ${since} and newer have it.`,
        `Choose a target of TensorRT ${since} or newer, or another ${instead}.`,
      ),
    ];
  const lowest = format.computeCapability ?? 0;
  const lacking = computeCapabilities.find((capability) => capability < lowest);
  if (lacking === undefined) return [];
  return [
    fault(
      'TF_TARGET_UNSUPPORTED',
      `sm_${lacking} has no ${format.label}${holder}.`,
      `Choose targets from sm_${lowest} on, or another ${instead}.`,
    ),
  ];
}

/** Settings that the builder would reject before it calls the library, or starts trtexec. */
function optionFaults(recipe: Recipe, { toolchain, builder }: Buildable): readonly BuildFault[] {
  try {
    if (builder === 'trtexec') {
      const build = { identity: { recipe }, pluginPaths: [], toolchain, verbose: false };
      buildArguments(trtexecBuildRequest(build, '', { plan: '', timingCache: null }), toolchain.version);
    } else builderSettings(recipe, toolchain);
    return [];
  } catch (error) {
    if (!(error instanceof TrtforgeError)) throw error;
    return [fault(error.code, error.message, error.remedy)];
  }
}

function modelFaults(
  { precisions, operators, opset }: NonNullable<Buildable['model']>,
  asked: Buildable,
): readonly BuildFault[] {
  const { toolchain, recipe, computeCapabilities } = asked;
  const { version } = toolchain;
  const own = precisions.filter((id) => id !== 'int8' && id !== recipe?.precision);
  // A plug-in brings operators of its own, under any name.
  const isClosed = (recipe?.pluginDigests ?? []).length === 0;
  const parsed = toolchain.product === 'tensorrt' ? version : behaviour['rtx-parser'].value;
  const newest = opsetRanges.find((range) => compareVersions(parsed, range.version) >= 0)?.newest;
  return [
    ...own.flatMap((id) => typeFaults(id, asked, computeCapabilities, 'model')),
    ...Object.entries(isClosed ? operators : {}).flatMap(([type, count]) => {
      const elsewhere = operatorElsewhere(type, toolchain);
      return elsewhere === null
        ? []
        : fault(
            'TF_TARGET_UNSUPPORTED',
            `${nameOf(toolchain)} has no ${type}, which the model has ${count === 1 ? 'once' : `${count} times`}; it is in ${elsewhere}.`,
            `Choose a target among ${elsewhere}, export the model without ${type}, or load a plug-in for it: --plugin FILE.`,
          );
    }),
    ...(opset !== null && newest !== undefined && opset > newest
      ? [
          {
            ...doubt(
              `The model is of opset ${opset}, and the parser of ${nameOf(toolchain)} was made for up to ${newest}: what changed since is read the old way.`,
            ),
            opset: newest,
          },
        ]
      : []),
  ];
}
