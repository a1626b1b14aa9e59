import { versionOfCode } from '../../behaviour/versions.js';
import { regionOf } from '../../engines/plan/layer-names.js';
import { editRemedy } from '../../formats/onnx/edit-steps.js';
import type { Finding } from '../../formats/onnx/model-facts.js';
import type { ExplainedIssue, ModelPlace } from './explained-issue.js';
import { knownIssues } from './known-issues/index.js';
import { inOrder, type KnownIssue, REASON } from './known-issues/issue.js';
import { type ModelNodes, NO_FILE } from './model-nodes.js';

/** Number of lines that an issue lists; a tactic can be skipped thousands of times. */
export const LISTED_LINES = 20;

/** Number of unexplained error lines that are listed. */
export const LISTED_UNEXPLAINED = 100;

/** Number of findings of a model that are reported as causes. */
const MOST_CAUSES = 5;

/** Number of different node names that an issue remembers. */
const MENTIONS = 50;

/** Only so much of a line is matched: what reports a message stands at its front. */
const LONGEST_MATCHED = 8 << 10;

/** Lines that only report that something before them failed. */
const CONSEQUENCE = new RegExp(
  [
    '^(?:Engine set up failed|Inference set up failed|Building engine failed|Engine could not be created from network|Failed to create engine from model or file|Network And Config setup failed|Parsing model failed|Failed to parse onnx file|Got invalid engine!|Engine deserialization failed|Builder creation failed|Required optimization profile is invalid|Could not create network|Failed to create (?:runtime|builder|context)|Error occurred during inference|(?:Network|Config|Builder config|runtime) creation failed|Engine refit failed|Reading engine file (?:via .{1,50} )?failed|Set optimization profile failed|Please ensure that the engine is built with preview feature|Unable to create execution context|Invalid tensor names found in --loadInputs)',
    // Lines that the ONNX parser prints around the node it rejected, and the library's reports of having no engine.
    '--- (?:Begin|End) node ---|^Node name: ',
    '^\\S{1,200}\\.cpp:\\d{1,9}: (?:input|output|name|op_type): "',
    'In function (?:(?:check|import)FallbackPlugin|parse(?:Graph|Node|Model):)',
    'Internal Error \\((?:Engine deserialization failed|Assertion engine != nullptr failed)',
    'Network validation failed',
    // Lines that ONNX Runtime and nvinfer print of an engine that was not built or did not run.
    'TensorRT EP (?:could not build engine|execution context enqueue failed)|Non-zero status code returned while running TRTKernel|build engine file failed|Failed to set pipeline to',
    // trtforge's report of a failure whose lines stand before.
    '^TF_[A-Z_]{3,60} ',
  ].join('|'),
);

/** Lines below an unexplained error that are listed with it. */
const CONTINUED = 3;

/** The first and the last line of trtexec's own. */
const BANNER = /^&&&& (?:RUNNING|PASSED|FAILED) \S+ \[TensorRT v(\d{1,9})\]/;

export interface FinderLine {
  readonly number: number;
  /** As it stands in the log. */
  readonly text: string;
  /** Without date, severity and source. */
  readonly message: string;
  readonly severity: 'I' | 'W' | 'E' | 'F' | 'V' | null;
}

interface FoundIssue {
  readonly issue: KnownIssue;
  readonly groups: Groups;
  readonly lines: { line: number; text: string }[];
  readonly mentions: Set<string>;
  count: number;
}

type Groups = Readonly<Record<string, string | undefined>>;

/** Matches lines with the known issues as they come, in constant memory. */
export class IssueFinder {
  readonly #known: readonly KnownIssue[];
  /** Issues that some other line takes back. */
  readonly #retractable: readonly KnownIssue[];
  /** `10.6.0` once it is known: some texts mean different things in different majors. */
  version: string | null = null;
  readonly unexplained: { line: number; text: string }[] = [];
  readonly #found = new Map<string, FoundIssue>();
  readonly #takenBack = new Set<string>();
  /** The list that the last error stands in, and how many more lines without a severity of their own belong to it, whatever their text. */
  #error: { readonly lines: { line: number; text: string }[]; continued: number } | null = null;

  /** `more`: known issues beside the core's; they come first, being more special. */
  constructor(more: readonly KnownIssue[] = []) {
    this.#known = [...more, ...knownIssues];
    this.#retractable = this.#known.filter(({ unless }) => unless !== undefined);
  }

  take(line: FinderLine): void {
    if (line.severity === 'V') return;
    const code = BANNER.exec(line.message)?.[1];
    if (code !== undefined) this.version = versionOfCode(Number(code));
    // The message alone: a second one may be glued to the line.
    const text = line.message.slice(0, LONGEST_MATCHED);
    for (const { id, unless } of this.#retractable) if (unless?.test(text) === true) this.#takenBack.add(id);
    const match = this.#match(text);
    if (match !== undefined) {
      this.#error = { lines: this.#note(match, line), continued: 0 };
      return;
    }
    const isError = line.severity === 'E' || line.severity === 'F';
    if (isError) {
      const isConsequence = CONSEQUENCE.test(line.message);
      this.#error = { lines: this.unexplained, continued: isConsequence ? 0 : CONTINUED };
      if (!isConsequence) this.#list(this.unexplained, line);
    } else if (line.severity !== null || code !== undefined || text.trim() === '') this.#error = null;
    else if (this.#error !== null && (REASON.test(text) || this.#error.continued-- > 0))
      this.#list(this.#error.lines, line);
  }

  #list(lines: { line: number; text: string }[], { number, text }: FinderLine): void {
    if (lines.length < (lines === this.unexplained ? LISTED_UNEXPLAINED : LISTED_LINES))
      lines.push({ line: number, text });
  }

  has(...ids: readonly string[]): boolean {
    return ids.some((id) => this.#found.has(id));
  }

  /** Whether some line names a node, so that a model would add to it. */
  get namesNodes(): boolean {
    return [...this.#found.values()].some(({ mentions }) => mentions.size > 0);
  }

  /** The worst first. With a model, the nodes that the lines name are looked up in it; `passed` reports that the work went well. */
  issues({ model, passed }: { model?: ModelNodes; passed: boolean }): ExplainedIssue[] {
    const standing = [...this.#found.values()].filter(({ issue }) => !this.#takenBack.has(issue.id));
    const issues = standing.map((found) =>
      explained(found, meaningOf(found.issue, standing, passed), passed, model),
    );
    const causes = passed || model === undefined ? [] : this.#causes(issues, model);
    const places = new Set(standing.flatMap(({ issue }) => (issue.isPlace ? [issue.id] : [])));
    return inOrder([...causes, ...issues.filter(({ id }) => causes.length === 0 || !places.has(id))]);
  }

  /** Findings of `inspect` on the nodes that the lines name; on the whole model where neither they nor a known issue lead anywhere. */
  #causes(issues: readonly ExplainedIssue[], model: ModelNodes): ExplainedIssue[] {
    const errors = issues.filter(({ severity }) => severity === 'error');
    const places = errors.filter(({ id }) => this.#found.get(id)?.issue.isPlace);
    if (errors.length === 0 && this.unexplained.length === 0) return [];
    const named = errors.flatMap(({ model }) => model?.nodes ?? []);
    const isOf = ({ where }: Finding) =>
      named.some(
        ({ graph, operator, name }) => where === `${graph}/${operator.split('::').at(-1)} "${name}"`,
      );
    const all = model.rejections();
    const own = all.filter(isOf);
    const lines = [...places.flatMap(({ lines }) => lines), ...this.unexplained].slice(0, LISTED_LINES);
    const isExplained = errors.length > places.length;
    return (own.length > 0 || isExplained ? own : all)
      .slice(0, MOST_CAUSES)
      .map(({ code, where, message, remedy = '' }, index) => ({
        ...{ id: 'model-finding', severity: 'error', cause: `${where}: ${message}` },
        remedy: `\`trtforge inspect\` lists it as ${code}. ${remedy}`.trim(),
        ...{ versions: 'all', source: 'measured', count: Math.max(lines.length, 1), lines },
        model: index > 0 ? null : (places.find(({ model }) => model !== null)?.model ?? null),
      }));
  }

  #match(text: string): { issue: KnownIssue; groups: Groups } | undefined {
    for (const issue of this.#known) {
      if (!inMajors(issue, this.version)) continue;
      const match = issue.pattern.exec(text);
      if (match !== null) return { issue, groups: match.groups ?? {} };
    }
    return undefined;
  }

  #note({ issue, groups }: { issue: KnownIssue; groups: Groups }, line: FinderLine): FoundIssue['lines'] {
    let found = this.#found.get(issue.id);
    if (found === undefined) {
      found = { issue, groups, lines: [], mentions: new Set(), count: 0 };
      this.#found.set(issue.id, found);
    }
    found.count++;
    this.#list(found.lines, line);
    const mention = groups.region ?? groups.node ?? groups.index;
    if (mention !== undefined && found.mentions.size < MENTIONS) found.mentions.add(mention);
    return found.lines;
  }
}

function inMajors({ majors }: KnownIssue, version: string | null): boolean {
  if (majors === undefined) return true;
  const major = Number(version?.split('.')[0]);
  return major >= majors[0] && major <= majors[1];
}

type Meaning = Pick<KnownIssue, 'severity' | 'cause' | 'remedy'>;

/** The meaning of an issue beside the others of its run. */
function meaningOf(issue: KnownIssue, standing: readonly FoundIssue[], passed: boolean): Meaning {
  if (passed) return issue.whenPassed ?? issue;
  const cause = standing.find((found) => issue.follows?.includes(found.issue.id));
  if (cause !== undefined)
    return {
      severity: 'note',
      cause: `${issue.cause} Here it follows from ${cause.issue.id}.`,
      remedy: `Do what helps against ${cause.issue.id} first.`,
    };
  const isFollowed = standing.some((found) => found.issue.follows?.includes(issue.id));
  return isFollowed ? (issue.whenFollowed ?? issue) : issue;
}

function explained(
  { issue, groups, lines, mentions, count }: FoundIssue,
  meaning: Meaning,
  passed: boolean,
  model?: ModelNodes,
): ExplainedIssue {
  const filled = (text: string) =>
    text.replaceAll(/( ?)\{(\w+)\}/g, (_whole, space: string, name: string) =>
      groups[name] === undefined ? '' : `${space}${groups[name]}`,
    );
  const { id, versions, source } = issue;
  const isHarmless = passed && meaning.severity === 'error' && issue.hiddenBySuccess !== true;
  const severity = isHarmless ? 'warning' : meaning.severity;
  const [cause, advice] = [filled(meaning.cause), filled(meaning.remedy)];
  const steps = isHarmless || meaning !== issue ? [] : stepsOf(issue, filled, model);
  const remedy = steps.length === 0 ? advice : `${advice} ${editRemedy(model?.path ?? NO_FILE, steps)}`;
  return {
    ...{ id, severity, cause, remedy, versions, source, count, lines: [...lines] },
    model: model === undefined ? null : placeOf(mentions, model),
  };
}

/** The steps of an edit that cures an issue; without the model, a batch of one stands for the sizes. */
function stepsOf(
  { edit }: KnownIssue,
  filled: (text: string) => string,
  model?: ModelNodes,
): readonly string[] {
  const fixing = () => model?.fixing() ?? ['--set-dim', 'batch=1'];
  return (edit?.split(' ') ?? []).flatMap((word) => (word === '{sizes}' ? fixing() : filled(word)));
}

/** A region is `first...last`, a parser's node is its number, anything else the name of a node or of a layer made of several. */
function placeOf(mentions: ReadonlySet<string>, model: ModelNodes): ModelPlace | null {
  for (const mention of mentions) {
    const region = regionOf(`ForeignNode[${mention}]`);
    const place =
      region !== null && mention.includes('...')
        ? model.between(region.first, region.last)
        : model.named(mention);
    if (place !== null) return place;
  }
  return null;
}
