import { shellLine } from '../../../base/text/shell-line.js';
import { behaviour, holds, serves } from '../../../behaviour/facts.js';
import { operatorLists } from '../../../behaviour/operators.js';
import { agree } from '../../../behaviour/versions.js';
import { buildFaults } from '../../../engines/builder/buildable.js';
import { buildWords } from '../../../engines/identity/build-line.js';
import { differencesOf, shortIdentity } from '../../../engines/identity/identity.js';
import type { ModelContent } from '../../../engines/identity/model-digest.js';
import type { Passport } from '../../../engines/identity/passport.js';
import { defaultRecipe, type Recipe } from '../../../engines/identity/recipe.js';
import { isOfProduct, type Target } from '../../../engines/identity/target.js';
import type { PlanHeader } from '../../../engines/plan/header.js';
import { loadsAcross, loadsIn, platformOfEngine } from '../../../engines/plan/loads.js';
import { mayServe } from '../../../engines/store/compatibility.js';
import type { NotFound } from '../../../engines/store/store.js';
import { formatNamed } from '../../../formats/precision/formats/index.js';
import type { Machine } from './machine.js';
import { type Load, outcomes, type Which } from './result.js';

/** An engine, as far as it can be read here; in the place of its header what is wrong with it. */
export interface Candidate extends Omit<Load, 'verdict' | 'rule' | 'reason'> {
  readonly header: Pick<PlanHeader, 'product' | 'version'> | NotFound;
  readonly passport: Passport | null;
}

const drivers: Readonly<Record<number, number>> = behaviour['cuda-driver'].value;

type Ruling = readonly [verdict: Load['verdict'], rule: string, reason: string];

/** The request and its engines: those of the first store first, the newest of each first. */
export interface Found extends Pick<Which, 'query' | 'model'> {
  readonly engines: readonly Candidate[];
  /** Of the model, where one was named. */
  readonly content?: ModelContent;
}

/** Which engines the machines load. Reads nothing. */
export function judgeEngines(found: Found, asked: readonly Machine[]): Which {
  const machines = asked.map((machine): Which['machines'][number] => {
    const loads = found.engines.map((engine) => judge(engine, machine));
    const able = ableOf(loads);
    const undecided = loads.some(({ verdict }) => verdict === 'unknown') ? 'inconclusive' : 'fail';
    const best = able[0]?.engine ?? null;
    const line = best === null ? buildLine(found, machine) : { build: null, chosen: takenOf(able, found) };
    return { ...machine, outcome: best === null ? undecided : 'pass', loads, best, ...line };
  });
  const outcome = outcomes.options.find((each) => machines.some((machine) => machine.outcome === each));
  const { query, model } = found;
  return { schema: 'trtforge.which/1', query, model, outcome: outcome ?? 'inconclusive', machines };
}

/** The best first: without a runtime inside before with, timed on this GPU before others, of this very target before compatible ones; the newest of equals. */
function ableOf(loads: readonly Load[]): readonly Load[] {
  const cost = ({ verdict, warning, rule }: Load) =>
    (verdict === 'yes' ? 0 : 4) + (warning === null ? 0 : 2) + (rule === 'exact' ? 0 : 1);
  const able = loads.filter(({ verdict }) => verdict === 'yes' || verdict === 'if-allowed');
  return able.sort((a, b) => cost(a) - cost(b));
}

const labelOf = (passport: Passport | null | undefined): string =>
  formatNamed(passport?.identity.document.recipe.precision)?.label ?? 'the types of the model';

/** Which of several engines that load is taken, by its precision; of those with one precision the fields that differ, by identity. */
function takenOf(able: readonly Load[], { engines }: Found): string | null {
  if (able.length < 2) return null;
  const passports = able.map(
    ({ engine }) => engines.find((each) => each.engine === engine)?.passport ?? null,
  );
  const labels = passports.map(labelOf);
  const isShared = (label: string) => labels.filter((each) => each === label).length > 1;
  const [first] = passports;
  const texts = passports.map((passport, at) => {
    const label = labels[at]!;
    if (passport === null || !isShared(label)) return label;
    const id = shortIdentity(passport.identity.digest);
    if (first === null || first === undefined || at === 0) return `${label} (${id})`;
    const fields = Array.from(
      differencesOf(first.identity.document, passport.identity.document),
      ({ field, b }) => `${field} ${JSON.stringify(b) ?? 'absent'}`,
    );
    return `${label} (${id}${labels[0] === label && fields.length > 0 ? `, with ${fields.join(', ')}` : ''})`;
  });
  const [taken, ...others] = texts;
  return `${able.length} engines load. Taken: ${taken}, the newest of those that fit best; the others: ${others.join(', ')}.`;
}

/**
 * The line to type on a machine that lacks an engine: with the profiles of the first one, and the precision of the first that needs neither calibration nor another GPU or
 * TensorRT.
 */
function buildLine(
  { query, model, engines, content }: Found,
  machine: Machine,
): Pick<Which['machines'][number], 'build' | 'chosen'> {
  const { gpu, tensorrt, os, arch } = machine;
  const passports = engines.flatMap(({ passport }) => passport ?? []);
  const [nearest] = passports;
  const file = model !== null ? query : nearest && `${nearest.model.name}.onnx`;
  if (file === undefined) return { build: null, chosen: null };
  const old = oldDriver(machine);
  if (old !== null)
    return { build: null, chosen: `${old} Install that driver, or state a TensorRT for an older CUDA.` };
  const { recipe, target } = nearest?.identity.document ?? {};
  const { product, version, cudaMajor } = tensorrt ?? { product: productFor(machine, target), version: '' };
  // Of a version that is not known only what the newest cannot build is known.
  const newest =
    product === 'tensorrt' ? operatorLists.newest : behaviour['rtx-parser']['tensorrt-rtx'].since;
  const toolchain = { product, version: version || newest };
  const stronglyTyped = holds('strong-typing', toolchain);
  const faultOf = (precision: Recipe['precision']) =>
    buildFaults({
      toolchain,
      computeCapabilities: gpu === null ? [] : [gpu.capability],
      platform: { os, arch },
      recipe: { ...defaultRecipe, precision, stronglyTyped },
      model: content,
    }).find(({ severity }) => severity === 'error');
  const impossible = faultOf('as-is');
  if (impossible !== undefined)
    return { build: null, chosen: `${impossible.message} ${impossible.remedy ?? ''}`.trim() };
  const repeated = passports.find(({ identity: { document } }) => {
    const { conversion, precision } = document.recipe;
    return !conversion?.calibration && faultOf(precision) === undefined;
  });
  const id = formatNamed(repeated?.identity.document.recipe.precision)?.id;
  const named = isWhole(version) ? { named: { version, cudaMajor: cudaMajor ?? null } } : {};
  const wanted =
    gpu === null ? { computeCapabilities: null } : { ...named, computeCapabilities: [gpu.capability] };
  const chosen = [
    ...precisionTexts(nearest, repeated),
    ...(model === null ? [`Write the path of ${file}: the store knows its name alone.`] : []),
  ];
  return {
    build: shellLine(
      buildWords(
        {
          recipe: { ...defaultRecipe, precision: id ?? 'as-is', profiles: recipe?.profiles ?? [] },
          target: { product, ...wanted, os, arch },
        },
        file,
      ),
    ),
    chosen: chosen.join(' ') || null,
  };
}

/** The precision of a line that repeats an engine, and the newest engine's where that is another. */
function precisionTexts(newest: Passport | undefined, repeated: Passport | undefined): readonly string[] {
  if (newest === undefined) return [];
  const builds = `Builds ${labelOf(repeated)}.`;
  if (newest === repeated) return [builds];
  const { conversion, precision } = newest.identity.document.recipe;
  return [
    builds,
    conversion?.calibration
      ? `The newest engine is ${labelOf(newest)}: add --precision ${precision} --calibration SAMPLES for that.`
      : `The newest engine is ${labelOf(newest)}, which this machine cannot have.`,
  ];
}

/** NVIDIA's containers of these names have TensorRT, whatever its version. */
const hasTensorrt = ({ container }: Machine): boolean =>
  /(^|\/)(tritonserver|deepstream|tensorrt):/.test(container ?? '');

/** The product that a machine without a stated TensorRT builds with: the engine's, unless that has no kernels there. */
function productFor(machine: Machine, target: Target | undefined): Target['product'] {
  if (target === undefined || hasTensorrt(machine)) return 'tensorrt';
  return machine.gpu !== null && serves(target, machine.gpu.capability) === 'no'
    ? 'tensorrt'
    : target.product;
}

/** Whether a machine loads an engine. What a machine or an engine does not state makes it `unknown`, unless something else rules it out. */
function judge({ header, passport, ...engine }: Candidate, machine: Machine): Load {
  const [verdict, rule, reason] = rulingOf(header, passport, machine);
  const timed = verdict !== 'no' && passport !== null ? timedElsewhere(passport, machine) : null;
  return { ...engine, verdict, rule, reason, warning: timed ?? engine.warning };
}

function rulingOf(header: Candidate['header'], passport: Passport | null, machine: Machine): Ruling {
  const { gpu, tensorrt } = machine;
  const { product, version } = tensorrt ?? {};
  const old = oldDriver(machine);
  if ('found' in header) return ['no', header.code ?? 'TF_FILE_NOT_FOUND', header.reason];
  if (!isServed(machine))
    return ['no', 'gpu-not-served', `${product} ${version} does not serve sm_${gpu?.capability}.`];
  if (old !== null) return ['no', 'driver-old', old];
  return passport === null ? byHeader(header, machine) : byPassport(passport, machine);
}

/** Why a machine's driver runs no library of its CUDA; null where it does, or either is not stated. */
function oldDriver({ driver, tensorrt }: Machine): string | null {
  const { cudaMajor } = tensorrt ?? {};
  const series = drivers[cudaMajor ?? 0];
  return series !== undefined && Number.parseInt(driver ?? '', 10) < series
    ? `CUDA ${cudaMajor} needs driver ${series} or newer; this is ${driver}.`
    : null;
}

/** Whether a machine's TensorRT may serve its GPU. */
const isServed = ({ gpu, tensorrt }: Machine): boolean =>
  gpu === null || tensorrt === null || serves(tensorrt, gpu.capability) !== 'no';

/** Whether a version has its build number: one patch may have several builds, which do not load each other's plans. */
const isWhole = (version: string): boolean => version.split('.').length === 4;

/** The facts that a machine lacks for an engine of a version. */
function missing({ gpu, anyGpu, tensorrt, container }: Machine, built: string): readonly string[] {
  const unstated = container === null ? 'Its TensorRT' : `The TensorRT of ${container}`;
  const isPart = tensorrt !== null && !isWhole(tensorrt.version) && agree(tensorrt.version, built);
  return [
    ...(gpu === null && !anyGpu ? ['Its GPU is not stated.'] : []),
    ...(tensorrt === null ? [`${unstated} is not known; \`trtforge toolchain list\` prints it there.`] : []),
    ...(isPart ? [`The engine needs ${built}, and only ${tensorrt.version} is known.`] : []),
  ];
}

/** By the rules of the store, with the engine's own facts in the place of those that the machine lacks. */
function byPassport({ identity: { document } }: Passport, machine: Machine): Ruling {
  const { gpu, tensorrt } = machine;
  const own = { ...document.target, ...platformOfEngine(document) };
  const elsewhere = loadsAcross(own, machine);
  if (elsewhere?.loads === 'no') return ['no', 'other-platform', elsewhere.why];
  const { product, version } =
    tensorrt ?? (hasTensorrt(machine) ? { ...own, product: 'tensorrt' as const } : own);
  const target = {
    ...own,
    product,
    version: agree(version, own.version) ? own.version : version,
    cudaMajor: own.cudaMajor === null ? null : (tensorrt?.cudaMajor ?? own.cudaMajor),
    computeCapabilities: gpu === null ? own.computeCapabilities : [gpu.capability],
  };
  const { serves, rule, reason } = mayServe({ ...document, target }, { ...document, target: own });
  const lacking = missing(machine, own.version);
  if (!serves) return ['no', rule, reason];
  if (lacking.length > 0) return ['unknown', 'not-stated', lacking.join(' ')];
  if (elsewhere !== null) return ['unknown', 'other-platform', elsewhere.why];
  const { loads, why } = loadsIn(own, target, document.recipe.flags);
  return [loads === 'if-allowed' ? loads : 'yes', rule, rule === 'exact' ? why : reason];
}

/** An engine without a passport states its product and version alone. */
function byHeader(header: Pick<PlanHeader, 'product' | 'version'>, machine: Machine): Ruling {
  const { product, version } = header;
  const runtime = machine.tensorrt ?? { product, version: version ?? 'of any version' };
  const { loads, why } = loadsIn(header, runtime);
  if (loads === 'no') return ['no', runtime.product === product ? 'other-version' : 'other-product', why];
  const lacking = missing(machine, version ?? '');
  if (loads === 'yes' && lacking.length === 0 && machine.anyGpu) return ['yes', 'exact', why];
  return ['unknown', 'no-passport', [why, ...lacking, 'Its own GPU and platform are not known.'].join(' ')];
}

/** Products of one compute capability load each other's engines, whose tactics were chosen by time on the builder's. */
function timedElsewhere({ identity, built }: Passport, { gpu }: Machine): string | null {
  const { recipe, target } = identity.document;
  if (target.product !== 'tensorrt' || recipe.hardwareCompatibility !== 'none') return null;
  if (gpu?.product === undefined || built.gpu === null || isOfProduct(built.gpu, gpu.product)) return null;
  return `Its tactics were timed on ${built.gpu}, not on ${gpu.product}.`;
}
