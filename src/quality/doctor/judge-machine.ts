import { addonRemedy } from '../../addon/addon.js';
import { plural } from '../../base/text/quantity.js';
import { isIntegrated } from '../../behaviour/facts.js';
import type { DoctorFacts, MachineFacts, RemoteFacts, StoreFacts, ToolFacts } from './doctor-facts.js';
import { type Finding, findingsOf, gibibytes } from './finding.js';

const NODE_MINIMUM = [20, 19] as const;
/** A 12-layer encoder in FP32 takes 1.3 GiB to build with tensorrt-rtx (measured); larger models take more. A GPU without memory of its own needs as much of it. */
const MEMORY_FOR_BUILDS_BYTES = 2 * 2 ** 30;
const DISK_FOR_ENGINES_BYTES = 2 * 2 ** 30;

export function judgeMachine(facts: DoctorFacts): readonly Finding[] {
  const { machine, tools } = facts;
  return [
    ...(machine === undefined
      ? []
      : [...judgeNode(machine), ...judgeMemory(machine, facts), ...judgePlatform(machine)]),
    ...(tools === undefined ? [] : judgeTools(tools, machine?.platform ?? 'linux')),
  ];
}

const machine = findingsOf('machine');

function judgeNode({ node }: MachineFacts): readonly Finding[] {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  const isEnough = major > NODE_MINIMUM[0] || (major === NODE_MINIMUM[0] && minor >= NODE_MINIMUM[1]);
  if (isEnough) return [machine.ok('node', `Node.js ${node}`)];
  return [
    machine.problem(
      'node',
      `Node.js ${node} is older than ${NODE_MINIMUM.join('.')}.`,
      `Install Node.js ${NODE_MINIMUM.join('.')} or newer.`,
    ),
  ];
}

function judgeMemory(
  { memoryBytes, memoryAvailableBytes, processors, os }: MachineFacts,
  { gpus }: Pick<DoctorFacts, 'gpus'>,
): readonly Finding[] {
  const isShared = gpus?.gpus.some(({ computeCapability }) => isIntegrated(computeCapability)) === true;
  const cores = `${processors} ${processors === 1 ? 'core' : 'cores'}`;
  const what = `${os}, ${cores}, ${gibibytes(memoryAvailableBytes)} of ${gibibytes(memoryBytes)} memory available`;
  if (memoryAvailableBytes >= MEMORY_FOR_BUILDS_BYTES * (isShared ? 2 : 1))
    return [machine.ok('memory', what)];
  return [machine.warning('memory', what, 'Free memory before building large models: builds may be killed.')];
}

function judgePlatform({ platform, architecture, isContainer }: MachineFacts): readonly Finding[] {
  const here = isContainer ? [machine.info('container', 'This is a container.')] : [];
  if (platform === 'linux' && (architecture === 'x64' || architecture === 'arm64')) return here;
  return [
    ...here,
    machine.info(
      'platform',
      `Engines are built on Linux; on ${platform} (${architecture}) inspect, convert, verify and report work.`,
      'Build in a Linux container or machine.',
    ),
  ];
}

function judgeTools({ addon, compiler, pip }: ToolFacts, platform: string): readonly Finding[] {
  if (platform !== 'linux') return [];
  const pipFinding =
    pip === null
      ? machine.info(
          'pip',
          'python3 with pip is not installed; toolchain install needs it, or a wheel.',
          'Install python3-pip, or pass a wheel: trtforge toolchain install tensorrt-rtx --wheel FILE',
        )
      : machine.ok('pip', pip);
  const addonFinding = addon.isBuilt
    ? machine.ok('addon', `The addon that drives TensorRT is installed (${addon.path}).`)
    : machine.warning(
        'addon',
        `The addon that drives TensorRT is not installed${compiler === null ? ', and neither is g++' : ''}.`,
        addonRemedy(),
      );
  return [addonFinding, pipFinding];
}

const store = findingsOf('store');

export function judgeStore(facts: StoreFacts | undefined): readonly Finding[] {
  if (facts === undefined) return [];
  const { folder, exists, isWritable, engines, bytes, freeBytes, unchecked, unanswered } = facts;
  if (!isWritable) {
    return [
      store.problem(
        'read-only',
        `The store ${folder} cannot be written.`,
        'Pass another folder with --cache-dir, or set TENSORRT_CACHE_DIR or XDG_CACHE_HOME to one you may write.',
      ),
    ];
  }
  const content = exists
    ? `${engines} ${engines === 1 ? 'engine' : 'engines'}, ${gibibytes(bytes)}`
    : 'not made yet';
  const what = `${folder}: ${content}; ${gibibytes(freeBytes)} free on its disk`;
  const unproven =
    unchecked.length === 0
      ? []
      : [
          store.warning(
            'unchecked',
            `${plural(unchecked.length, 'engine')} did not prove themselves yet on this GPU with this driver and library: ${listedNames(unchecked)}.`,
            'trtforge cache check',
          ),
        ];
  const [first] = unanswered;
  if (first !== undefined)
    unproven.push(
      store.info(
        'unanswered',
        `${plural(unanswered.length, 'engine')} without a known answer to prove itself by: ${listedNames(unanswered.map(({ name }) => name))}.`,
        `Record it from the model, of each that \`trtforge cache check\` lists: ${first.record}`,
      ),
    );
  if (freeBytes >= DISK_FOR_ENGINES_BYTES) return [store.ok('folder', what), ...unproven];
  return [
    ...unproven,
    store.warning(
      'disk',
      what,
      'Free disk space: `trtforge cache clear` removes engines that are no longer needed.',
    ),
  ];
}

const listedNames = ([first, second, ...more]: readonly string[]): string =>
  [first, second, more.length === 0 ? undefined : `${more.length} more`]
    .filter((each) => each !== undefined)
    .join(', ');

/** Builds go on without a remote store, so one that cannot be used is a warning. */
export function judgeRemote(facts: RemoteFacts | null | undefined): readonly Finding[] {
  if (facts == null) return [];
  const { place, failure, remedy } = facts;
  return failure === null
    ? [store.ok('remote', `${place}: answers`)]
    : [store.warning('remote', failure, remedy ?? undefined)];
}
