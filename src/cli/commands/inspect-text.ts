import { formatBytes, formatCount, formatMs, formatStatistic, plural } from '../../base/text/quantity.js';
import type { LayerPrecisions, Passport } from '../../engines/identity/passport.js';
import type { ProfileRange } from '../../engines/identity/recipe.js';
import { platformText, targetText } from '../../engines/identity/target.js';
import { versionText } from '../../engines/plan/header.js';
import type { EnginesInspected, PlanFacts } from '../../engines/plan/inspect.js';
import { platformOfEngine } from '../../engines/plan/loads.js';
import type { Finding, ModelFacts, ValueFacts } from '../../formats/onnx/model-facts.js';
import { typeLabel } from '../../formats/tensor/dtype.js';
import { contentsSentence, floatingNodes, floatingSentence, layerSentences } from '../../report/sentences.js';
import type { TextOutput } from '../command.js';
import { table } from '../text.js';
import { figuresText, flopRows, gapRows, memoryRows, shapeText, shortCount } from './inspect-cost-text.js';

const MOST_OPS = 12;

/** The text view of an ONNX model: what goes in and out, how large it is, what it is made of, what looks wrong. */
export function renderModel(facts: ModelFacts, output: TextOutput): void {
  const { bold, dim } = output.colors;
  const opset = facts.opsets['ai.onnx'];
  const more = Object.entries(facts.opsets).filter(([domain]) => domain !== 'ai.onnx');
  const about = [
    `ONNX IR ${facts.irVersion}`,
    opset === undefined ? 'no opset' : `opset ${opset}`,
    ...more.map(([domain, version]) => `${domain} ${version}`),
    `${facts.producer} ${facts.producerVersion}`.trim(),
    formatBytes(facts.fileBytes),
  ].filter((part) => part !== '');
  output.line(`${bold(facts.file)}  ${dim(about.join(' · '))}`);
  output.line();
  section(output, 'Inputs', valueRows(facts.inputs));
  section(output, 'Outputs', valueRows(facts.outputs));
  section(output, 'Nodes', nodeRows(facts));
  section(output, 'Weights', weightRows(facts));
  if (facts.cost !== undefined) {
    section(output, 'FLOPs', flopRows(facts.cost));
    section(output, 'Memory', memoryRows(facts.cost));
    section(output, 'Unknown', gapRows(facts.cost));
  }
  section(
    output,
    'Files',
    facts.externalFiles.map(({ path, bytes }) => [
      path,
      bytes === null ? 'not readable' : formatBytes(bytes),
    ]),
  );
  section(
    output,
    'Functions',
    facts.functions.map(({ domain, name, nodes }) => [`${domain}::${name}`, plural(nodes, 'node')]),
  );
  if (facts.nodeList !== undefined) renderNodes(facts.nodeList, output);
  if (facts.weightList !== undefined) renderWeights(facts.weightList, output);
  renderFindings(facts.findings, output);
}

function renderWeights(weights: NonNullable<ModelFacts['weightList']>, { line, colors }: TextOutput): void {
  const rows = weights.map(({ name, dtype, shape, min, max, zeros, sparse24 }) => [
    dtype,
    shape.join('x') || 'scalar',
    ...[min, max].map((value) => (value === null ? '–' : formatStatistic(value))),
    zeros === null ? '–' : formatCount(zeros),
    sparse24 === null ? '–' : sparse24 ? 'yes' : 'no',
    name,
  ]);
  const [titles = '', ...lines] = table(['TYPE', 'SHAPE', 'MIN', 'MAX', 'ZEROS', '2:4', 'WEIGHT'], rows);
  line();
  line(colors.dim(titles));
  for (const text of lines) line(text);
}

/** Two lines a node: operator, name, what goes in and out; output shapes, FLOPs, attributes. */
function renderNodes(nodes: NonNullable<ModelFacts['nodeList']>, { line, colors }: TextOutput): void {
  line();
  for (const node of nodes) {
    const { op, name, inputs, outputs, attributes } = node;
    const values = Object.entries(attributes).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
    line(`${colors.cyan(op)} ${colors.bold(name)}  ${inputs.join(', ')} → ${outputs.join(', ')}`);
    line(
      `  ${[figuresText(node), ...(values.length > 0 ? [colors.dim(values.join('  '))] : [])].join('  ')}`,
    );
  }
}

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

function valueRows(
  values: readonly (Omit<ValueFacts, 'dtype'> & { readonly dtype: string | null })[],
): string[][] {
  return values.map(({ name, dtype, shape }) => [name, dtype ?? 'unknown', shapeText(shape)]);
}

function nodeRows(facts: ModelFacts): string[][] {
  const total =
    facts.nodesTotal === facts.nodes ? `${facts.nodes}` : `${facts.nodes}, with bodies ${facts.nodesTotal}`;
  const ops = Object.entries(facts.ops);
  const shown = ops.slice(0, MOST_OPS).map(([type, count]) => `${type} ${count}`);
  const rest = ops.length - shown.length;
  const lines = wrapped(rest > 0 ? [...shown, `and ${rest} more types`] : shown);
  return [[total], ...lines.map((line) => [line])];
}

function weightRows(facts: ModelFacts): string[][] {
  const { initializers, parameters, initializersByDtype, sparseInitializers } = facts;
  if (initializers.count === 0 && sparseInitializers === 0) return [];
  const sparse = sparseInitializers === 0 ? '' : `, ${sparseInitializers} sparse`;
  const first = [
    `${shortCount(parameters)} parameters`,
    `${plural(initializers.count, 'tensor')}${sparse}`,
    formatBytes(initializers.bytes),
  ];
  const byDtype = Object.entries(initializersByDtype);
  if (byDtype.length < 2) return [[...first, byDtype.map(([dtype]) => dtype).join('')]];
  byDtype.sort(([, a], [, b]) => b.bytes - a.bytes);
  return [
    first,
    ...byDtype.map(([dtype, { count, bytes }]) => [
      `  ${dtype}`,
      plural(count, 'tensor'),
      formatBytes(bytes),
    ]),
  ];
}

/** Joins with " · " into lines that fit a terminal. */
function wrapped(parts: readonly string[]): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + part.length < 76) lines[lines.length - 1] = `${last} · ${part}`;
    else lines.push(part);
  }
  return lines;
}

/** A title and rows of cells in columns; nothing when there are no rows. */
function section(output: TextOutput, title: string, rows: readonly (readonly string[])[]): void {
  const single = rows.every((row) => row.length === 1);
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  for (const [index, row] of rows.entries()) {
    const label = index === 0 ? output.colors.cyan(title.padEnd(10)) : ' '.repeat(10);
    const cells = single
      ? row
      : row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)));
    output.line(`${label} ${cells.join('  ')}`.trimEnd());
  }
}

/** So many places of findings that are alike are named; --json has all. */
const MOST_PLACES = 3;

/** Prints the findings, or that nothing looks wrong. */
export function renderFindings(findings: readonly Finding[], output: TextOutput): void {
  const { red, yellow, dim, green } = output.colors;
  output.line();
  if (findings.length === 0) {
    output.line(`${green('✓')} nothing looks wrong`);
    return;
  }
  const marks = { error: red('✗ error'), warning: yellow('! warning'), info: dim('· note') };
  // Those that are alike but for names and numbers once, with their places.
  const alike = new Map<string, Finding[]>();
  for (const finding of findings) {
    const key = `${finding.severity} ${finding.code} ${finding.message.replace(/"[^"]*"|\d+/g, '')}`;
    alike.set(key, [...(alike.get(key) ?? []), finding]);
  }
  const printed = new Set<string | undefined>();
  for (const group of alike.values()) {
    const { severity, code, message, remedy } = group[0]!;
    output.line(`${marks[severity]} ${dim(code)}  ${message}`);
    const places = group
      .slice(0, MOST_PLACES)
      .map(({ where }) => where)
      .join('; ');
    const rest = group.length - MOST_PLACES;
    output.line(`    ${dim(`at ${places}${rest > 0 ? `; ${rest} more like it` : ''}`)}`);
    // One line cures all that it concerns.
    if (remedy !== undefined && !printed.has(remedy)) output.line(`    → ${remedy}`);
    printed.add(remedy);
  }
}

/** Groups of nodes that are listed; --json has them all. */
const LISTED_GROUPS = 5;

/** Lines on the types that a quantized model's layers compute in, and on nodes quantized in vain. */
export function precisionLines(precisions: LayerPrecisions, { dim, yellow }: TextOutput['colors']): string[] {
  const groups = floatingNodes(precisions);
  const more = groups.length - LISTED_GROUPS;
  return [
    ...layerSentences(precisions),
    ...precisions.attentions.reasons.map((reason) => `${yellow('!')} ${reason}`),
    ...groups.slice(0, LISTED_GROUPS).map((group) => {
      const sentence = floatingSentence(group);
      return group.isProblem ? `${yellow('!')} ${sentence}` : dim(sentence);
    }),
    ...(more > 0 ? [dim(`${plural(more, 'more reason')} with --json`)] : []),
  ];
}
