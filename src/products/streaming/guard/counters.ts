import type { GuardListener, GuardViolation } from './violation.js';

/** Upper ends of the latency buckets, in seconds: 0.5 ms to 1 s. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.025, 0.05, 0.1, 0.25, 0.5, 1] as const;

/** The counts of events since the guard was made, for logs and for scraping. */
export class GuardCounters implements GuardListener {
  /** Steps that were begun, and those among them in which the session threw. */
  steps = 0;
  failedSteps = 0;
  seconds = 0;
  /** Steps by the first bucket they fit; the last is for those slower than all. */
  readonly #latency = new Array<number>(BUCKETS.length + 1).fill(0);
  readonly #violations = new Map<string, { readonly first: GuardViolation; count: number }>();
  readonly #errors = new Map<string, { last: number; largest: number }>();

  step(seconds: number, failed: boolean): void {
    this.steps++;
    if (failed) this.failedSteps++;
    this.seconds += seconds;
    let bucket = 0;
    while (bucket < BUCKETS.length && seconds > BUCKETS[bucket]!) bucket++;
    this.#latency[bucket]!++;
  }

  violation(violation: GuardViolation): void {
    const known = this.#violations.get(violation.rule);
    if (known === undefined) this.#violations.set(violation.rule, { first: violation, count: 1 });
    else known.count++;
  }

  error(tensor: string, maxAbs: number): void {
    const known = this.#errors.get(tensor);
    // A NaN stays: Math.max with it is NaN.
    this.#errors.set(tensor, { last: maxAbs, largest: Math.max(known?.largest ?? 0, maxAbs) });
  }

  /** Number of violations of a rule; of all rules without one. */
  violations(rule?: string): number {
    if (rule !== undefined) return this.#violations.get(rule)?.count ?? 0;
    return [...this.#violations.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** Everything in Prometheus' text format (version 0.0.4), with these labels on each line. */
  prometheus(labels: Readonly<Record<string, string>> = {}): string {
    const lines: string[] = [];
    const metric = (name: string, type: string, help: string) =>
      lines.push(`# HELP trtforge_guard_${name} ${help}`, `# TYPE trtforge_guard_${name} ${type}`);
    const sample = (name: string, own: Readonly<Record<string, string>>, value: number) =>
      lines.push(`trtforge_guard_${name}${labelText({ ...labels, ...own })} ${numberText(value)}`);

    metric('steps_total', 'counter', 'Steps that a guarded session began.');
    sample('steps_total', {}, this.steps);
    metric('failed_steps_total', 'counter', 'Steps in which the session itself failed.');
    sample('failed_steps_total', {}, this.failedSteps);
    metric('violations_total', 'counter', 'Contract violations.');
    for (const { first, count } of this.#violations.values())
      sample('violations_total', { rule: first.rule, kind: first.kind, tensor: first.tensor }, count);
    metric('step_seconds', 'histogram', 'How long a step took, checks not counted.');
    let within = 0;
    for (const [at, count] of this.#latency.entries()) {
      within += count;
      sample('step_seconds_bucket', { le: at < BUCKETS.length ? String(BUCKETS[at]) : '+Inf' }, within);
    }
    sample('step_seconds_sum', {}, this.seconds);
    sample('step_seconds_count', {}, this.steps);
    metric(
      'max_abs_error',
      'gauge',
      'Largest absolute error of an output when it was last compared with a reference.',
    );
    for (const [tensor, { last }] of this.#errors) sample('max_abs_error', { tensor }, last);
    metric('max_abs_error_worst', 'gauge', 'The largest of those so far.');
    for (const [tensor, { largest }] of this.#errors) sample('max_abs_error_worst', { tensor }, largest);
    return `${lines.join('\n')}\n`;
  }
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const list = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return list.length === 0 ? '' : `{${list.join(',')}}`;
}

const escaped = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

const numberText = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? '+Inf' : value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
