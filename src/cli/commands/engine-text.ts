import { formatBytes, formatMs, plural } from '../../base/text/quantity.js';
import type { Passport } from '../../engines/identity/passport.js';
import type { ProfileRange } from '../../engines/identity/recipe.js';
import { platformText, targetText } from '../../engines/identity/target.js';
import { versionText } from '../../engines/plan/header.js';
import type { EnginesInspected, PlanFacts } from '../../engines/plan/inspect.js';
import { platformOfEngine } from '../../engines/plan/loads.js';
import { typeLabel } from '../../formats/tensor/dtype.js';
import { contentsSentence } from '../../report/sentences.js';
import type { TextOutput } from '../command.js';
import { table } from '../text.js';
import { precisionLines, renderFindings, section, valueRows } from './facts-text.js';
import { shapeText } from './inspect-cost-text.js';

/** The text view of plan files. */
export function renderEngines({ engines, memory }: EnginesInspected, output: TextOutput): void {
  if (engines.length === 1) renderPlan(engines[0]!, output);
  else renderPlans(engines, output);
  if (memory === undefined) return;
  const rows = engines.map(({ file }, at) => [file, formatBytes(memory.activationBytes[at]!)]);
  output.line();
  section(output, `Activations on ${memory.gpu}`, [
    ...rows,
    ['separately', formatBytes(memory.separateBytes)],
    ['in one activation pool', formatBytes(memory.sharedBytes)],
  ]);
}

function renderPlan(facts: PlanFacts, output: TextOutput): void {
  const { bold, dim, green, yellow, red } = output.colors;
  const product = facts.product === 'tensorrt' ? 'TensorRT' : 'TensorRT-RTX';
  output.line(`${bold(facts.file)}  ${dim(`${product} plan`)}`);
  output.line();
  const header = facts.foreignHeader;
  section(output, 'Built by', [[`${product} ${versionText(facts.version)}`]]);
  section(output, 'Size', [[formatBytes(facts.planBytes)], [contentsSentence(facts.contents)]]);
  section(output, 'SHA-256', [[facts.sha256]]);
  if (facts.program !== null) section(output, 'Computes', programRows(facts.program));
  section(output, 'Passport', [
    [facts.passport === null ? 'none: its model, precision and profiles are not known' : facts.passport.path],
  ]);
  // One of another plan is among the findings.
  if (facts.passport?.content.plan.sha256 === facts.sha256) renderPassport(facts.passport.content, output);
  if (header !== null) {
    const what = {
      ultralytics: 'Ultralytics header',
      json: 'JSON header',
      onnxruntime: 'the ONNX file around it',
    };
    section(output, 'In front', [[`${formatBytes(header.bytes)} of ${what[header.kind]}`]]);
  }
  const marks = {
    yes: green('yes'),
    'if-allowed': yellow('if allowed'),
    'if-version-compatible': yellow('maybe'),
    unproven: yellow('unproven'),
    no: red('no'),
  };
  section(
    output,
    'Loads in',
    facts.toolchains.map(({ name, loads, why }) => [name, marks[loads], dim(why)]),
  );
  renderFindings(facts.findings, output);
}

/** Several plans: a row each, and what is found of them. */
function renderPlans(engines: readonly PlanFacts[], output: TextOutput): void {
  const rows = engines.map(
    ({ file, sha256, planBytes, contents, product, version, passport, toolchains }) => {
      const document =
        passport?.content.plan.sha256 === sha256 ? passport.content.identity.document : undefined;
      return [
        file,
        `${product} ${versionText(version)}`,
        document === undefined ? '–' : document.recipe.precision,
        document === undefined ? '–' : targetText(document.target),
        document === undefined ? '–' : platformText(platformOfEngine(document)),
        formatBytes(planBytes),
        contents === null ? '–' : formatBytes(contents.weightsBytes),
        contents === null ? '–' : formatBytes(contents.kernelsBytes),
        toolchains.find(({ loads }) => loads === 'yes')?.name ?? '–',
      ];
    },
  );
  const titles = [
    'ENGINE',
    'BUILT BY',
    'PRECISION',
    'TARGET',
    'PLATFORM',
    'SIZE',
    'WEIGHTS',
    'KERNELS',
    'LOADS IN',
  ];
  const [head = '', ...lines] = table(titles, rows);
  for (const line of [output.colors.dim(head), ...lines]) output.line(line);
  for (const { file, findings } of engines) {
    if (findings.length === 0) continue;
    output.line();
    output.line(output.colors.bold(file));
    renderFindings(findings, output);
  }
}

const programRows = ({
  kernels,
  architectures,
  operators,
}: NonNullable<PlanFacts['program']>): string[][] => [
  [`${plural(kernels, 'kernel')} for ${architectures.join(', ') || 'any GPU'}`],
  ...operators.flatMap(({ operator, types }) =>
    Object.entries(types).map(([type, count]) => [`${plural(count, operator)} in ${typeLabel(type)}`]),
  ),
];

/** Prints an engine's facts and those of its build: bindings with their profiles, types, target, machine. */
function renderPassport({ identity, model, plan, built }: Passport, output: TextOutput): void {
  const { recipe, target } = identity.document;
  const ranges = (name: string) =>
    recipe.profiles.map(({ [name]: range }) => (range === undefined ? '' : rangeText(range)));
  section(output, 'Identity', [[identity.digest]]);
  section(
    output,
    'Inputs',
    plan.inputs.map(({ name, dtype, shape }) => [name, dtype, shapeText(shape), ...ranges(name)]),
  );
  section(output, 'Outputs', valueRows(plan.outputs));
  section(output, 'Profiles', [[recipe.profiles.length === 0 ? 'static' : `${recipe.profiles.length}`]]);
  const typing = recipe.stronglyTyped ? 'strongly typed' : 'weakly typed';
  section(output, 'Precision', [[[recipe.precision, typing, ...recipe.flags].join(' · ')]]);
  if (plan.precisions !== undefined)
    section(
      output,
      'Layers',
      precisionLines(plan.precisions, output.colors).map((line) => [line]),
    );
  section(output, 'Target', [
    [`${targetText(target)} · ${platformText(platformOfEngine(identity.document))}`],
  ]);
  const machine = built.gpu === null ? 'no GPU' : `${built.gpu}, driver ${built.driver ?? 'unknown'}`;
  if (built.refitted !== undefined)
    section(output, 'Refitted', [
      ['engine', built.refitted.identity],
      ['weights', `${model.name}, ${identity.document.model}`],
    ]);
  section(output, built.refitted === undefined ? 'Built' : 'Written', [
    [[built.at.slice(0, 16).replace('T', ' '), formatMs(built.ms), built.by, machine].join(' · ')],
  ]);
}

/** `1 × 3 / 8 × 3 / 32 × 3`: minimum, optimum, maximum; one where they are the same. */
function rangeText({ min, opt, max }: ProfileRange): string {
  const texts = [min, opt, max].map((shape) => shapeText(shape));
  return new Set(texts).size === 1 ? (texts[0] ?? '') : texts.join(' / ');
}
