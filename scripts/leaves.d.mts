export function untouchedLeaves(folder: string): {
  readonly base: string | null;
  readonly leaves: readonly string[];
};
