/** A phase that has begun and not ended. */
export interface OpenPhase {
  readonly name: string;
  readonly detail: string;
  readonly parent: OpenPhase | undefined;
  readonly depth: number;
  /** The progress of the phase, where known. */
  progress: string;
  /** `performance.now()` of its beginning. */
  readonly started: number;
  /** Lines of the phases in it that have ended, indented below it. */
  readonly lines: string[];
}

/**
 * Which phase runs in which: one that begins while another runs is part of it. Phases of several components run side by side, and their names begin with the
 * component (`encoder: build`): those are parts of phases of the same component.
 */
export class PhaseTree {
  #open: OpenPhase[] = [];

  start(name: string, detail = ''): OpenPhase {
    const parent = this.innermost(name);
    const depth = parent === undefined ? 0 : parent.depth + 1;
    const phase = { name, detail, parent, depth, progress: '', started: performance.now(), lines: [] };
    this.#open.push(phase);
    return phase;
  }

  /** The last to begin of those that run, and that one of a name is or would be part of. */
  innermost(name?: string): OpenPhase | undefined {
    const fits = ({ name: open }: OpenPhase) =>
      name === undefined || [componentOf(name), ''].includes(componentOf(open));
    return this.#open.findLast(fits);
  }

  /** The phase that an event of a name is about. */
  named(name: string): OpenPhase | undefined {
    return this.#open.findLast((open) => open.name === name) ?? this.innermost(name);
  }

  /** The phase of a name, which runs no more. */
  end(name: string): OpenPhase | undefined {
    const phase = this.#open.findLast((open) => open.name === name);
    this.#open = this.#open.filter((open) => open !== phase);
    return phase;
  }

  /** The phases that run within the last of a name, innermost first. */
  within(name: string): readonly OpenPhase[] {
    const outer = this.#open.findLast((open) => open.name === name);
    const isInside = ({ parent }: OpenPhase): boolean =>
      parent !== undefined && (parent === outer || isInside(parent));
    return this.#open.filter(isInside).toReversed();
  }

  /** Puts lines below the phase that they are part of; gives back those of no phase that runs. */
  place(parent: OpenPhase | undefined, lines: readonly string[]): readonly string[] {
    const open = parent !== undefined && this.#open.includes(parent);
    if (!open) return parent === undefined ? lines : this.place(parent.parent, lines);
    parent.lines.push(...lines.map((line) => `  ${line}`));
    return [];
  }

  get isEmpty(): boolean {
    return this.#open.length === 0;
  }
}

/** `encoder` of `encoder: build`; empty for a phase of no component. */
const componentOf = (name: string): string => /^([^:]+): /.exec(name)?.[1] ?? '';
